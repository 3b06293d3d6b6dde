{-# LANGUAGE BangPatterns #-}
-- Lightweight threads of GHC: skynet with an MVar or a Chan a node, and small workloads.
module Main (main) where

import Control.Concurrent
import Control.Monad
import Data.IORef
import Data.Int (Int64)
import Data.List (intercalate, isPrefixOf, sort)
import Data.Maybe (fromMaybe)
import GHC.Clock (getMonotonicTime)
import System.Environment (getArgs)
import System.Exit
import System.IO
import System.Mem (performMajorGC)
import System.Info (compilerVersion)
import Data.Version (showVersion)

type Options = [(String, String)]

data Outcome = Outcome {seconds :: !Double, units :: !Int64, ok :: !Bool, figures :: [(String, Double)]}

number :: String -> Int64 -> Options -> Int64
number name standard = maybe standard read . lookup name

timed :: IO a -> IO (Double, a)
timed action = do
  start <- getMonotonicTime
  !value <- action
  stop <- getMonotonicTime
  pure (stop - start, value)

nodes :: Int64 -> Int64
nodes 1 = 1
nodes leaves = leaves + nodes (leaves `div` 10)

-- How a node reports to its parent: something that is made once a node, and its two ends.
skynet :: IO (Int64 -> IO (), IO Int64) -> Options -> IO Outcome
skynet newChannel options = do
  let leaves = number "leaves" 1000000 options
      node send !first 1 = send first
      node send !first size = do
        (sendUp, receive) <- newChannel
        let part = size `div` 10
        forM_ [0 .. 9] $ \i -> forkIO (node sendUp (first + i * part) part)
        total <- collect receive (10 :: Int) 0
        send total
      collect _ 0 !total = pure total
      collect receive n !total = receive >>= \v -> collect receive (n - 1) (total + v)
  (time, total) <- timed $ do
    (send, receive) <- newChannel
    _ <- forkIO (node send 0 leaves)
    receive
  pure (Outcome time (nodes leaves) (total == leaves * (leaves - 1) `div` 2) [])

byMVar, byChan :: IO (Int64 -> IO (), IO Int64)
byMVar = do
  v <- newEmptyMVar
  pure (\x -> x `seq` putMVar v x, takeMVar v)
byChan = do
  c <- newChan
  pure (\x -> x `seq` writeChan c x, readChan c)

pingpong :: Options -> IO Outcome
pingpong options = do
  let rounds = number "messages" 2000000 options `div` 2
  (time, final) <- timed $ do
    ping <- newEmptyMVar
    pong <- newEmptyMVar
    _ <- forkIO $ forM_ [1 .. rounds] $ \_ -> do
      v <- takeMVar ping
      putMVar pong $! v + 1
    let go 0 !v = pure v
        go n !v = putMVar ping v >> takeMVar pong >>= go (n - 1)
    go rounds (0 :: Int64)
  pure (Outcome time (2 * rounds) (final == rounds) [])

joinAll :: Int64 -> IO () -> IO ()
joinAll count action = do
  ends <- forM [1 .. count] $ \_ -> do
    end <- newEmptyMVar
    _ <- forkIO (action >> putMVar end ())
    pure end
  mapM_ takeMVar ends

mutex :: Options -> IO Outcome
mutex options = do
  let threads = number "fibers" 4 options
      count = number "count" 1000000 options
  counter <- newMVar (0 :: Int64)
  (time, ()) <- timed $ joinAll threads $ replicateM_ (fromIntegral count) $ modifyMVar_ counter (\n -> pure $! n + 1)
  final <- readMVar counter
  pure (Outcome time (threads * count) (final == threads * count) [])

yields :: Options -> IO Outcome
yields options = do
  let threads = number "fibers" 2 options
      count = number "count" 2000000 options
  (time, ()) <- timed $ joinAll threads $ replicateM_ (fromIntegral count) yield
  pure (Outcome time (threads * count) True [])

spawnJoin :: Options -> IO Outcome
spawnJoin options = do
  let count = number "count" 1000000 options
  total <- newIORef 0
  (time, ()) <- timed $ do
    end <- newEmptyMVar
    forM_ [1 .. count] $ \i -> do
      _ <- forkIO (putMVar end i)
      v <- takeMVar end
      modifyIORef' total (+ v)
  final <- readIORef total
  pure (Outcome time count (final == count * (count + 1) `div` 2) [])

memory :: Options -> IO Outcome
memory options = do
  let count = number "count" 1000000 options
  performMajorGC
  before <- statusBytes "VmRSS:"
  gate <- newEmptyMVar
  parked <- newIORef (0 :: Int64)
  (time, ()) <- timed $ do
    forM_ [1 .. count] $ \_ -> forkIO $ do
      atomicModifyIORef' parked (\n -> (n + 1, ()))
      readMVar gate
      atomicModifyIORef' parked (\n -> (n - 1, ()))
    waitFor parked (== count)
  performMajorGC
  after <- statusBytes "VmRSS:"
  (ending, ()) <- timed $ putMVar gate () >> waitFor parked (== 0)
  let each = fromIntegral count
  pure (Outcome time count True [ ("resident_bytes_per_fiber", fromIntegral (after - before) / each)
                                , ("wake_and_end_ns_per_fiber", ending * 1e9 / each) ])
  where
    waitFor ref holds = do
      now <- readIORef ref
      unless (holds now) (yield >> waitFor ref holds)

statusBytes :: String -> IO Int64
statusBytes field = do
  text <- readFile "/proc/self/status"
  let found = [words line !! 1 | line <- lines text, field `isPrefixOf` line]
  -- Read now, not when the number is wanted.
  length text `seq` pure $! case found of
    (kib : _) -> read kib * 1024
    [] -> 0

workload :: String -> String -> Maybe (Options -> IO Outcome, String)
workload "skynet" "mvar" = Just (skynet byMVar, "fiber")
workload "skynet" "chan" = Just (skynet byChan, "fiber")
workload "pingpong" "mvar" = Just (pingpong, "message")
workload "mutex" "mvar" = Just (mutex, "lock")
workload "yield" "fibers" = Just (yields, "switch")
workload "spawn" "join" = Just (spawnJoin, "fiber")
workload "memory" "mvar" = Just (memory, "fiber")
workload _ _ = Nothing

main :: IO ()
main = runInUnboundThread $ do -- the main thread is bound to one of the system, and switches to and from it are slow
  arguments <- getArgs
  case arguments of
    [] -> die' "which workload?"
    (name : rest) -> do
      let options = map option rest
          style = fromMaybe "mvar" (lookup "style" options)
      case workload name style of
        Nothing -> die' ("there is no workload " ++ name ++ " in style " ++ style)
        Just (run, unit) -> measure name style unit options (run options)

die' :: String -> IO a
die' what = hPutStrLn stderr ("haskell peer: " ++ what) >> exitWith (ExitFailure 2)

option :: String -> (String, String)
option word = case break (== '=') (drop 2 word) of
  (name, '=' : value) -> (name, value)
  (name, _) -> (name, "1")

-- Repeats the work until it has taken as long as was asked for. The result is the mean of one.
runMeasured :: Options -> IO Outcome -> IO Outcome
runMeasured options run = run >>= go (1 :: Int)
  where
    least = fromIntegral (number "least-ms" 0 options) / 1000
    pause = fromIntegral (number "pause-ms" 0 options) * 1000
    go n whole
      | ok whole && seconds whole < least && n < 1000000 = do
          threadDelay pause
          next <- run
          let added = [(key, value + fromMaybe 0 (lookup key (figures next))) | (key, value) <- figures whole]
          go (n + 1) (Outcome (seconds whole + seconds next) (units whole) (ok next) added)
      | otherwise = pure (Outcome (seconds whole / fromIntegral n) (units whole) (ok whole)
                                  [(key, value / fromIntegral n) | (key, value) <- figures whole])

measure :: String -> String -> String -> Options -> IO Outcome -> IO ()
measure name style unit options run = do
  workers <- getNumCapabilities
  base <- statusBytes "VmRSS:"
  warm <- replicateM (fromIntegral (number "warmup" 1 options)) run
  runs <- replicateM (fromIntegral (number "runs" 5 options)) (performMajorGC >> runMeasured options run)
  peak <- statusBytes "VmHWM:"
  let right = all ok (warm ++ runs)
      times = map seconds runs
      counted = units (head runs)
      named = [ show key ++ ":" ++ show [fromMaybe 0 (lookup key (figures r)) | r <- runs] | (key, _) <- figures (head runs)]
      extra = if null named then "" else ",\"figures\":{" ++ intercalate "," named ++ "}"
  putStrLn $ concat
    [ "{\"system\":\"haskell\",\"version\":\"GHC ", showVersion compilerVersion, "\",\"workload\":", show name, ",\"style\":", show style
    , ",\"workers\":", show workers, ",\"unit\":", show unit, ",\"units\":", show counted, ",\"seconds\":", show times
    , ",\"ns_per_unit\":", show (median times * 1e9 / fromIntegral counted), ",\"peak_rss_bytes\":", show peak
    , ",\"base_rss_bytes\":", show base, ",\"ok\":", if right then "true" else "false", extra, "}" ]
  unless right exitFailure

median :: [Double] -> Double
median values = (sorted !! ((n - 1) `div` 2) + sorted !! (n `div` 2)) / 2
  where
    sorted = sort values
    n = length values

package main

import (
	"flag"
	"fmt"
	"net"
	"runtime"
)

// The server of experiment 6, which ramie-lab's load drives: a goroutine for each connection. Serves until it is killed.
func serveEcho(words []string) {
	flags := flag.NewFlagSet("echo_server", flag.ExitOnError)
	flags.String("style", "goroutine", "there is one")
	workers := flags.Int("workers", 1, "GOMAXPROCS")
	if err := flags.Parse(words); err != nil {
		fail("%v", err)
	}
	runtime.GOMAXPROCS(*workers)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail("%v", err)
	}
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail("%v", err)
		}
		go func() {
			defer connection.Close()
			buffer := make([]byte, 4096)
			for {
				n, err := connection.Read(buffer)
				if err != nil {
					return
				}
				if _, err := connection.Write(buffer[:n]); err != nil {
					return
				}
			}
		}()
	}
}

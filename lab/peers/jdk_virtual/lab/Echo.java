package lab;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.ThreadFactory;

/** The server of experiment 6, which ramie-lab's load drives: a virtual thread for each connection. */
final class Echo {
  private Echo() {}

  /** Serves until the process is killed. */
  static void serve(ThreadFactory threads) throws Exception {
    Thread acceptor = threads.newThread(() -> {
      try (ServerSocket listener = new ServerSocket(0, 4096, InetAddress.getLoopbackAddress())) {
        System.out.println("port " + listener.getLocalPort());
        System.out.flush();
        for (;;) {
          Socket connection = listener.accept();
          connection.setTcpNoDelay(true);
          threads.newThread(() -> echo(connection)).start();
        }
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    });
    acceptor.start();
    acceptor.join();
    System.exit(1);
  }

  private static void echo(Socket connection) {
    try (connection) {
      InputStream in = connection.getInputStream();
      OutputStream out = connection.getOutputStream();
      byte[] buffer = new byte[4096];
      for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
        out.write(buffer, 0, n);
      }
    } catch (IOException e) {
      // The client is gone.
    }
  }
}

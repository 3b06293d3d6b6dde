//! The server of experiment 6, which ramie-lab's load drives: a task for each connection.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves until the process is killed.
pub async fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        tokio::spawn(echo(connection));
    }
}

async fn echo(mut connection: TcpStream) {
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer).await {
            Ok(n) if n > 0 => {
                if connection.write_all(&buffer[..n]).await.is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

// Hello over HTTP by axum on tokio: port and threads are arguments.
use axum::{extract::State, http::header, response::IntoResponse, routing::get, Router};
use std::sync::Arc;

async fn json(State(text): State<Arc<String>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text.as_str().to_owned())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let text = Arc::new(std::fs::read_to_string(&arguments[3]).unwrap());
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments[2].parse().unwrap())
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let app = Router::new().route("/", get(|| async { "hello\n" })).route("/json", get(json)).with_state(text);
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", arguments[1].parse().unwrap())).await.unwrap();
            axum::serve(listener, app).await.unwrap();
        });
}

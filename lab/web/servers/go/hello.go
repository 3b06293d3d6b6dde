// Hello over HTTP by net/http, and a WebSocket at /echo by gorilla/websocket: port, threads, the file of /json, and with TLS the
// files of certificate and key.
package main

import (
	"net/http"
	"os"
	"runtime"
	"strconv"

	"github.com/gorilla/websocket"
)

var upgrader = websocket.Upgrader{ReadBufferSize: 4096, WriteBufferSize: 4096}

func echo(w http.ResponseWriter, r *http.Request) {
	connection, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer connection.Close()
	for {
		kind, message, err := connection.ReadMessage()
		if err != nil {
			return
		}
		if err := connection.WriteMessage(kind, message); err != nil {
			return
		}
	}
}

func main() {
	threads, _ := strconv.Atoi(os.Args[2])
	runtime.GOMAXPROCS(threads)
	json, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	hello := []byte("hello\n")
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "text/plain; charset=utf-8")
		w.Write(hello)
	})
	http.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("content-type", "application/json")
		w.Header().Set("content-length", strconv.Itoa(len(json)))
		w.Write(json)
	})
	http.HandleFunc("/echo", echo)
	at := "127.0.0.1:" + os.Args[1]
	if len(os.Args) > 4 {
		panic(http.ListenAndServeTLS(at, os.Args[4], os.Args[5], nil))
	}
	panic(http.ListenAndServe(at, nil))
}

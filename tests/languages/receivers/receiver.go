// A receiver around verify.go: PORT, WEBHOOK_SECRET and STORED say where, with what, and into which file.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"languages/webhook"
)

func main() {
	secrets := strings.Split(os.Getenv("WEBHOOK_SECRET"), "\n")
	stored, err := os.OpenFile(os.Getenv("STORED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	var lock sync.Mutex
	seen := map[string]bool{}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		signatures := r.Header.Values("X-Service-Signature")
		if err != nil || !webhook.Verify(signatures, body, secrets, time.Now().Unix()) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		var event struct{ ID, Type string }
		lock.Lock()
		defer lock.Unlock()
		if json.Unmarshal(body, &event) == nil && !seen[event.ID] {
			fmt.Fprintln(stored, event.ID, event.Type)
			seen[event.ID] = true
		}
		w.WriteHeader(http.StatusNoContent)
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

package operator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// The types of the answers that are made here.
const (
	textType   = "text/plain; charset=utf-8"
	jsonType   = "application/json"
	binaryType = "application/octet-stream"
)

// send writes a whole answer. net/http leaves the body of a HEAD out. What fails
// here fails because the client is gone, and there is nobody to tell.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	sendHead(w, status, contentType, len(body))
	w.Write(body)
}

// sendHead writes the header of an answer with that many bytes of body, and limits the time
// for both.
func sendHead(w http.ResponseWriter, status int, contentType string, length int) {
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWait))
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

// say answers with a sentence of ours.
func say(w http.ResponseWriter, status int, sentence string) {
	send(w, status, textType, []byte(sentence+"\n"))
}

// sendJSON answers with a value of ours.
func sendJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // sections were encoded before; the rest has no value that fails
	}
	send(w, status, jsonType, append(body, '\n'))
}

// busy refuses for the time being.
func busy(w http.ResponseWriter, why outcome, sentence string) outcome {
	w.Header().Set("Retry-After", retryAfter)
	w.Header().Set("Connection", "close")
	say(w, http.StatusServiceUnavailable, sentence)
	return why
}

// misuse refuses a parameter. The error is one of ours and quotes nothing.
func misuse(w http.ResponseWriter, err error) outcome {
	say(w, http.StatusBadRequest, err.Error())
	return misused
}

func nothing(w http.ResponseWriter) outcome {
	say(w, http.StatusNotFound, "there is nothing here; / lists what there is")
	return notFound
}

package simulate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"

	"serve.zone/relay/contract"
)

// utcDay returns the UTC day of a time as the contract writes it.
func utcDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// answerTraffic answers one page of counters (contract §11.4). The relay has judged
// the question before it asked, so that a wrong one is its breach, and so is a
// cursor that is none of this ingress's for these days: it is opaque to everybody
// else.
func (i *Ingress) answerTraffic(k *link, body []byte) verdict {
	request, err := contract.ReadTrafficRequest(body)
	if err != nil {
		i.violated(TrafficQuestion, k.number, contract.MethodGetTrafficStatistics)
		return refused(err)
	}
	var after bucketKey
	if request.Cursor != nil {
		var ok bool
		if after, ok = i.cursors.read(*request.Cursor, request); !ok {
			i.violated(ForeignCursor, k.number, contract.MethodGetTrafficStatistics)
			return refuseText("cursor: is none that this ingress gave for these days")
		}
	}
	list, more := i.traffic.between(request.FromDayUTC, request.ToDayUTC, after, int(request.Limit))
	page := contract.Raw{'['}
	for n, b := range list {
		if n > 0 {
			page = append(page, ',')
		}
		b.NodeID = i.cfg.NodeID
		page = b.AppendJSON(page)
	}
	answer := compose().value("statistics", append(page, ']'))
	if more {
		last := list[len(list)-1]
		answer.text("nextCursor", i.cursors.text(bucketKey{last.DayUTC, last.Hostname}, request))
	}
	return accepted(answer.end())
}

// cursorKey seals cursors, so that only what was given is taken back.
type cursorKey [sha256.Size]byte

func newCursorKey() cursorKey {
	var k cursorKey
	rand.Read(k[:])
	return k
}

// text returns the cursor behind a bucket, for the days of a question.
func (c cursorKey) text(last bucketKey, request contract.TrafficRequest) string {
	place := last.day + " " + last.hostname
	return base64.RawURLEncoding.EncodeToString(append(c.seal(place, request), place...))
}

// read returns the bucket that a cursor is behind, and false for one that was not
// given for these days.
func (c cursorKey) read(text string, request contract.TrafficRequest) (bucketKey, bool) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(decoded) <= sealSize {
		return bucketKey{}, false
	}
	day, hostname, _ := strings.Cut(string(decoded[sealSize:]), " ")
	place := bucketKey{day, hostname}
	// The decoder passes over line ends and spare bits; only one text is ours.
	return place, hmac.Equal([]byte(c.text(place, request)), []byte(text))
}

const sealSize = 16

func (c cursorKey) seal(place string, request contract.TrafficRequest) []byte {
	m := hmac.New(sha256.New, c[:])
	m.Write([]byte(request.FromDayUTC + " " + request.ToDayUTC + " " + place))
	return m.Sum(nil)[:sealSize]
}

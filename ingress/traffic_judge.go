package ingress

import (
	"serve.zone/relay/contract"
)

// question is what Cloudly asks, with its cursor read.
type question struct {
	contract.TrafficRequest
	cursor *contract.TrafficCursor // nil for the first page
}

// judgeQuestion reads a request of Cloudly.
func judgeQuestion(body []byte) (question, *contract.Refusal) {
	if len(body) > requestLimit {
		return question{}, refusal(RequestInvalid, "body: is larger than 65536 bytes")
	}
	request, err := contract.ReadTrafficRequest(body)
	if err != nil {
		return question{}, refusal(RequestInvalid, reasonsOf(err))
	}
	q := question{TrafficRequest: request}
	if request.Cursor != nil {
		cursor, ok := contract.ParseTrafficCursor(*request.Cursor)
		if !ok {
			return question{}, refusal(RequestInvalid, "cursor: is none that this relay gave")
		}
		q.cursor = &cursor
	}
	return q, nil
}

// asked is what an ingress is asked, at its own cursor.
func (q question) asked(at contract.TrafficCursor) contract.TrafficRequest {
	request := q.TrafficRequest
	request.Cursor = nil
	if at.Inner != "" {
		request.Cursor = &at.Inner
	}
	return request
}

// judgePage reads what the ingress of a node answered, and judges it by itself and
// by what was asked (contract §11.4).
func judgePage(response []byte, asked contract.TrafficRequest, nodeID string) (contract.TrafficPage, error) {
	page, err := contract.ReadTrafficPage(response)
	if err != nil {
		return contract.TrafficPage{}, err
	}
	if reasons := page.ValidateFor(asked, nodeID); len(reasons) > 0 {
		what := contract.MethodGetTrafficStatistics + " answer"
		return contract.TrafficPage{}, &contract.InvalidError{What: what, Reasons: reasons}
	}
	return page, nil
}

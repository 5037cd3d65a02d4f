package startup_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"serve.zone/relay/cloudly"
	"serve.zone/relay/contract"
	"serve.zone/relay/integration/rig"
	"serve.zone/relay/simulate"
)

// Shapes that Cloudly sends and the relay reads, as texts in which %s is where a
// foreign member may stand, one place at a time.
const (
	offerText   = `{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.0.0"%s}`
	sessionText = `{"protocol":` + offerText + `%s}`
	refText     = `{"id":"record-1","generation":1,"digest":"sha256:` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `"%s}`
	refusalText = `{"code":"protocol-incompatible","reason":"peer-below-minimum","refusing":` + offerText + `,"refused":` + offerText + `%s}`
)

// grown returns a text with a foreign member in one of its places, counted from 0.
func grown(text string, place int) []byte {
	parts := strings.Split(text, "%s")
	return []byte(strings.Join(parts[:place+1], "") + `,"zzForeign":true` + strings.Join(parts[place+1:], ""))
}

// answerText is an accepted registration under this relay's origin. Its places are
// protocol, credential, acceptedRegistration and the top.
func answerText(r *rig.Rig) string {
	return fmt.Sprintf(`{"origin":%q,"protocol":`, r.Origin()) + offerText + `,"credential":` + refText + `,"acceptedRegistration":` + refText + `%s}`
}

// afresh ends the wait for the next attempt, as an operator does who has put something
// right: a wait after a plain failure gives way to SIGHUP.
func afresh(r *rig.Rig) {
	r.Signal(syscall.SIGHUP)
}

// waitFailures waits until so many attempts in a row have come to nothing.
func waitFailures(r *rig.Rig, n int) {
	r.Eventually(fmt.Sprint(n, " failed attempts"), func() error {
		if got := rig.SectionOf[cloudly.Status](r, cloudly.Name).Failures; got < n {
			return fmt.Errorf("%d have failed", got)
		}
		return nil
	})
}

// R04: a foreign member at any exact level of what Cloudly answers makes the answer none:
// nothing of it is taken over, and the attempt is given up by name.
func TestR04_AnswersWithAForeignMember(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	cases := []struct {
		where, method string
		answer        []byte
		want          string
	}{
		{"session: protocol", openSession, grown(sessionText, 0), "session-unanswered"},
		{"registration: protocol", register, grown(answerText(r), 0), "registration-unanswered"},
		{"registration: credential", register, grown(answerText(r), 1), "registration-unanswered"},
		{"registration: acceptedRegistration", register, grown(answerText(r), 2), "registration-unanswered"},
	}
	for i, c := range cases {
		r.Cloudly.Script(c.method, simulate.Respond(c.answer))
		if i == 0 {
			r.Start()
		} else {
			afresh(r)
		}
		waitFailures(r, i+1)
		r.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing", c.want)
		session := rig.SectionOf[cloudly.Status](r, cloudly.Name)
		if session.AcceptedRegistrations != 0 || session.Origin != "" || session.Credential != nil || session.AcceptedRegistration != nil {
			t.Errorf("%s: something of it was taken over: %+v", c.where, session)
		}
		if against := r.Readiness().Against(); len(against) == 0 {
			t.Errorf("%s: ready", c.where)
		}
		if n := r.Cloudly.Scripted(c.method); n != 0 {
			t.Errorf("%s: it was not answered", c.where)
		}
	}
	afresh(r)
	r.WaitReady()
	// Whether Cloudly had used the three numbers is not known (contract O20).
	waitSequences(t, r, 0, 1, 2, 3)
}

// R04, O35: unknown members at the top of accepted answers, and in the identity, are
// those of a later minor, and are ignored.
func TestR04_O35_AnswersOfALaterMinor(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	r.Cloudly.Script(openSession, simulate.Respond(grown(sessionText, 1)))
	r.Cloudly.Script(register, simulate.Respond(grown(answerText(r), 3)))
	r.Start()
	r.WaitReady()
	if got := rig.SectionOf[cloudly.Status](r, cloudly.Name); got.Credential == nil || got.Credential.ID != "record-1" {
		t.Errorf("the answer was not taken over: %+v", got.Credential)
	}
	if n := r.Upstream.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// R04, R10: what is not exactly a protocol refusal is none (contract §4): it is a plain
// failure, and the next attempt is not 300 s away.
func TestR04_R10_ProtocolRefusalWithAForeignMember(t *testing.T) {
	t.Parallel()
	r := rig.New(t, rig.NotStarted())
	refuse := func(place int) []byte { return grown(refusalText, place) }
	for place, where := range []string{"refusing", "refused", "top"} {
		r.Cloudly.Script(register, simulate.Refuse("protocol-incompatible", refuse(place)))
		if place == 0 {
			r.Start()
		} else {
			afresh(r)
		}
		waitFailures(r, place+1)
		r.WaitCheck(cloudly.Name, cloudly.CheckSession, "failing", "registration-refused")
		session := rig.SectionOf[cloudly.Status](r, cloudly.Name)
		if last := session.LastRefusal; last == nil || last.Name != "unnamed" || last.Standing {
			t.Errorf("%s: the refusal counts as %+v", where, last)
		}
	}
	// The whole one counts.
	r.Cloudly.Script(register, simulate.Refuse("protocol-incompatible", []byte(strings.ReplaceAll(refusalText, "%s", ""))))
	afresh(r)
	r.WaitCheck(cloudly.Name, cloudly.CheckRefusal, "failing", string(contract.PeerBelowMinimum))
	// None of the four has used the number.
	waitSequences(t, r, 0, 0, 0, 0)
}

// R04: of a pushed configuration the blocks that the relay reads are exact. A foreign
// member makes the block none, by name, and changes nothing held; everywhere else the
// document is Cloudly's own.
func TestR04_ConfigurationWithAForeignMember(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	waitConfigured(r)
	document := func(place int) []byte {
		text := fmt.Sprintf(`{"configData":{"data":{"relay":{"origin":%q`, r.Origin()) +
			`%s},"nodes":[{"id":"node-a","data":{"corestore":{"endpoint":"http://192.0.2.7:9000"%s}%s}%s}]%s}%s}%s}`
		return grown(text, place)
	}
	for place, c := range []struct{ where, state, reason string }{
		{"relay", "failing", "relay-block-invalid"},
		{"corestore", "failing", "node-endpoint-invalid"},
		{"data of a node", "ok", ""},
		{"node", "ok", ""},
		{"data", "ok", ""},
		{"document", "ok", ""},
		{"top", "ok", ""},
	} {
		from := r.NextSeq()
		r.Configure(document(place))
		check, ok := r.Readiness().Find(cloudly.Name, cloudly.CheckConfiguration)
		if !ok || check.State != c.state || check.Reason != c.reason {
			t.Errorf("%s: the check is %s %s", c.where, check.State, check.Reason)
		}
		told := ""
		for _, e := range r.Events(from) {
			if e.Type == string(cloudly.EventConfigurationFaulty) {
				told = e.Text("reason")
			}
		}
		if told != c.reason {
			t.Errorf("%s: the event says %q", c.where, told)
		}
	}
	waitSequences(t, r, 0)
	r.WaitReady()
}

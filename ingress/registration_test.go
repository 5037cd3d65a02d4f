package ingress

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/contract"
	"serve.zone/relay/typedsocket"
)

// R70: the body of a registration travels untouched, in a flow of its own, and the
// answer bears the relay's own offer (contract O16).
func TestR70_TheBodyTravelsUntouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		body := registrationOf("node-a", "a bearer")
		c := p.start(registerMethod, body)
		q := cloud.next(registerMethod)
		if string(q.Body()) != body {
			t.Errorf("Cloudly was sent %s", q.Body())
		}
		if got := r.status(); got.InFlight.Registrations != 1 || len(got.Ingresses) != 0 {
			t.Errorf("%+v", got)
		}
		for _, f := range cloud.got(registerMethod) {
			if !strings.HasPrefix(f, `{"method":"registerClusterIngress","request":`+body+`,"response":null,"requestInstanceId":"`) {
				t.Errorf("the envelope: %s", f)
			}
		}
		q.Answer([]byte(`{ "revision" : 7,"accepted":true,"x":1,"protocol":{"interfacesVersion":"32.9.0","minimumPeerVersion":"32.1.0"}}`))
		want := `{"accepted":true,"revision":7,"protocol":` + ownOfferText + `}`
		if a := <-c; a.err != nil || a.body != want {
			t.Errorf("the ingress was answered %s, %v", a.body, a.err)
		}
		if got := r.conn(p.relay); got.role != RoleIngress || got.node != "node-a" {
			t.Errorf("the socket is %s of %q", got.role, got.node)
		}
		if got := fmt.Sprint(r.told(IngressRegistered)); got != "[ingress-registered node=node-a outcome=first]" {
			t.Error(got)
		}

		c = p.start(registerMethod, body) // again, on the socket that has the role
		cloud.next(registerMethod).Answer([]byte(strings.Replace(acceptedText, "7", "null", 1)))
		if a := <-c; a.body != strings.Replace(want, "7", "null", 1) {
			t.Errorf("answered %s, %v", a.body, a.err)
		}
		if got := r.status(); len(got.Ingresses) != 1 || got.Ingresses[0].Registrations != 2 || got.InFlight.Registrations != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestARelayThatRegistersAgainDisturbsNobody: what waits for Cloudly goes on waiting.
func TestARelayThatRegistersAgainDisturbsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		q := cloud.next(registerMethod)
		r.SessionRegistered(cloud.relay)
		q.Answer([]byte(acceptedText))
		if a := <-c; a.err != nil {
			t.Error(a.err)
		}
	})
}

// TestTheRoleIsThereBeforeTheAnswerLeaves: who asks behind its acceptance is served.
func TestTheRoleIsThereBeforeTheAnswerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		cloud.on(registerMethod, func(q *typedsocket.Request) { q.Answer([]byte(acceptedText)) })
		for range 20 {
			if a := p.ask(registerMethod, registrationOf("node-a", "b")); a.err != nil {
				t.Fatal(a.err)
			}
			if a := p.ask(tableMethod, `{"knownRevision":null}`); a.body != `{"table":null}` {
				t.Fatalf("%s, %v", a.body, a.err)
			}
		}
	})
}

// R70: an ingress whose offer does not go with ours is refused without a frame to
// Cloudly, whatever else its body holds.
func TestR70_OffersAreJudgedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		for _, c := range []struct{ name, offer, reason string }{
			{"another major", `{"interfacesVersion":"33.0.0","minimumPeerVersion":"33.0.0"}`, "major-mismatch"},
			{"below our minimum", `{"interfacesVersion":"31.9.9","minimumPeerVersion":"31.0.0"}`, "major-mismatch"},
			{"above us", `{"interfacesVersion":"32.50.0","minimumPeerVersion":"32.45.0"}`, "self-below-peer-minimum"},
		} {
			for _, body := range []string{
				strings.Replace(registrationOf("node-a", "b"), offerText, c.offer, 1),
				`{"protocol":` + c.offer + `,"nodeId":7,"more":{}}`,
			} {
				want := `{"code":"protocol-incompatible","reason":"` + c.reason + `","refusing":` + ownOfferText + `,"refused":` + c.offer + `}`
				declinedWith(t, p.ask(registerMethod, body), want)
			}
		}
		cloud.none(registerMethod)
	})
}

// R70: an ingress below our own minimum is refused by peer-below-minimum, and Cloudly
// hears of none.
func TestR70_BelowOurMinimum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Offer.MinimumPeerVersion = "32.41.0" })
		cloud, p := r.cloudly(), r.node()
		declinedWith(t, p.ask(registerMethod, registrationOf("node-a", "b")),
			`{"code":"protocol-incompatible","reason":"peer-below-minimum","refusing":{"interfacesVersion":"32.44.0","minimumPeerVersion":"32.41.0"},"refused":`+offerText+`}`)
		cloud.none(registerMethod)
	})
}

// R71, R04: invalid registrations are refused here by name, each member by its path,
// and Cloudly is not asked (contract §11.2).
func TestR71_InvalidRegistrationsAreRefusedHere(t *testing.T) {
	good := registrationOf("node-a", "b")
	with := func(old, next string) string { return strings.Replace(good, old, next, 1) }
	for _, c := range []struct{ name, body, reasons string }{
		{"no offer", `{}`, "protocol: is missing"},
		{"an offer that is none", with(offerText, `{"interfacesVersion":"32.1.0"}`), "protocol.minimumPeerVersion: is missing"},
		{"an unknown key", with(`"nodeId"`, `"label":1,"nodeId"`), "body: unknown member"},
		{"an unknown key in the offer", with(`{"interfacesVersion"`, `{"x":1,"interfacesVersion"`), "protocol: unknown member"},
		{"no node", with(`"nodeId":"node-a",`, ``), "nodeId: is missing"},
		{"no bearer", with(`"b"`, `""`), "bearer: is empty"},
		{"a bearer that is no text", with(`"b"`, `[1]`), "bearer: is not a string"},
		{"R01: an empty node", with("node-a", ""), "nodeId: is not a node id"},
		{"R01: a dot", with("node-a", "a.b"), "nodeId: is not a node id"},
		{"R01: a colon", with("node-a", "a:b"), "nodeId: is not a node id"},
		{"R01: 129 characters", with("node-a", strings.Repeat("a", 129)), "nodeId: is not a node id"},
		{"several", with(`"nodeId":"node-a", "bearer":"b"`, `"nodeId":""`), "bearer: is missing"},
		{"no version", with(`"3.0.0"`, `"\u0007"`), "version: is not 1 to 128 printable characters"},
		{"too large", with(`"b"`, `"`+strings.Repeat("b", requestLimit)+`"`), "body: is larger than 65536 bytes"},
		{"an array", `[]`, "body: is not an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				cloud, p := r.cloudly(), r.node()
				a := p.ask(registerMethod, c.body)
				declinedWith(t, a, ownData(contract.IngressRegistrationInvalid))
				if got, want := textOf(a), "cluster-ingress-registration-refused: registration-invalid: "+c.reasons; got != want {
					t.Errorf("refused with %q, want %q", got, want)
				}
				cloud.none(registerMethod)
				if r.conn(p.relay).role != RoleUnbound {
					t.Error("the socket has a role")
				}
			})
		})
	}
}

// R71: the largest registration passes, and one byte more does not.
func TestR71_TheLargestRegistration(t *testing.T) {
	for over, want := range map[int]registrationEnd{0: registrationAccepted, 1: registrationInvalid} {
		bearer := strings.Repeat("b", requestLimit+over-len(registrationOf("node-a", "")))
		if _, refused, why := judgeRegistration(ownOffer, []byte(registrationOf("node-a", bearer))); why != want || (refused == nil) != (over == 0) {
			t.Errorf("%d bytes too many: %v, %s", over, refused, why)
		}
	}
}

func textOf(a answered) string {
	if refused, ok := a.err.(*typedsocket.RemoteError); ok {
		return refused.Text
	}
	return ""
}

// R01: ingresses on nodes of the node's vocabulary are carried.
func TestR01_NodesOfTheVocabularyAreCarried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud := r.cloudly()
		for _, node := range []string{"-abc", "_abc", strings.Repeat("a", 128)} {
			r.ingress(cloud, node)
		}
		if got := len(r.status().Ingresses); got != 3 {
			t.Errorf("%d ingresses", got)
		}
	})
}

// R71: each of the eight refusals, with the shortest and the longest wait, and errors
// that are no refusal of this contract, reach the ingress untouched.
func TestR71_RefusalsOfCloudlyTravelUntouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		for _, reason := range contract.IngressRegistrationReasons().Names() {
			for _, retry := range []int{1000, 300000} {
				data := fmt.Sprintf(`{ "retryAfterMs" : %d,"reason":%q, "code":"cluster-ingress-registration-refused"}`, retry, reason)
				c := p.start(registerMethod, registrationOf("node-a", "b"))
				cloud.next(registerMethod).Refuse("Cloudly's own words: "+string(reason), []byte(data))
				a := <-c
				declinedWith(t, a, data)
				if got := textOf(a); got != "Cloudly's own words: "+string(reason) {
					t.Errorf("the text became %q", got)
				}
				if got := r.status().LastRefusal; got.Reason != reason || got.RetryAfterMs != int64(retry) || got.Node != "node-a" {
					t.Errorf("the status shows %+v", got)
				}
			}
			if got := r.metrics.declined.Of(reasonNamed(reason)).Value(); got != 2 {
				t.Errorf("%s was counted %d times", reason, got)
			}
		}
		incompatible := `{"code":"protocol-incompatible","reason":"major-mismatch","refusing":` + ownOfferText + `,"refused":` + offerText + `}`
		for data, name := range map[string]contract.RefusalName{
			incompatible: "protocol-incompatible",
			`{"code":"cluster-ingress-registration-refused","reason":"conflict","retryAfterMs":999}`: "unnamed",
			`{"x":["y"]}`: "unnamed",
		} {
			c := p.start(registerMethod, registrationOf("node-a", "b"))
			cloud.next(registerMethod).Refuse("x", []byte(data))
			declinedWith(t, <-c, data)
			if got := r.status().LastRefusal; got.Reason != name {
				t.Errorf("the status shows %+v, want %s", got, name)
			}
		}
		if len(r.status().Ingresses) != 0 || r.conn(p.relay).role != RoleUnbound {
			t.Error("a refused registration changed something")
		}
	})
}

// R71: not-ready is the relay's own refusal: it has no session to Cloudly, or stops.
func TestR71_NotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		p := r.node()
		ready := func(what string) {
			t.Helper()
			a := p.ask(registerMethod, registrationOf("node-a", "b"))
			declinedWith(t, a, ownData(contract.IngressNotReady))
			if textOf(a) != "cluster-ingress-registration-refused: not-ready" {
				t.Errorf("%s: %s", what, textOf(a))
			}
		}
		ready("before the first session")
		cloud := r.cloudly()
		r.Suspend(cloud.relay)
		ready("suspended")
		r.SessionLost()
		ready("lost")
		cloud = r.cloudly()
		cloud.own.Cut(typedsocket.CloseGoingAway, "")
		<-cloud.relay.Done()
		ready("lost, and not told of it yet")
		r.SessionLost()
		cloud = r.cloudly()
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Drop()
		r.lose(cloud)
		declinedWith(t, <-c, ownData(contract.IngressNotReady)) // lost while Cloudly judged
		r.cloudly()
		if err := r.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		ready("stopping")
	})
}

// TestNoAnswerOfCloudly is a failure without a name (contract O38), and a late one
// holds nothing.
func TestNoAnswerOfCloudly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		begun := time.Now()
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		q := cloud.next(registerMethod)
		unnamed(t, <-c)
		if waited := time.Since(begun); waited != contract.ForwardTimeout {
			t.Errorf("it took %s", waited)
		}
		q.Answer([]byte(acceptedText))
		synctest.Wait()
		if len(r.status().Ingresses) != 0 || r.status().InFlight.Registrations != 0 || r.conn(p.relay).role != RoleUnbound {
			t.Errorf("%+v", r.status())
		}
	})
}

// TestAnAnswerThatIsNoneHoldsNothing.
func TestAnAnswerThatIsNoneHoldsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		for _, body := range []string{
			`{}`, `null`, `{"accepted":false,"revision":null,"protocol":` + offerText + `}`,
			`{"accepted":true,"revision":0,"protocol":` + offerText + `}`, `{"accepted":true,"revision":1,"protocol":{}}`,
		} {
			c := p.start(registerMethod, registrationOf("node-a", "b"))
			cloud.next(registerMethod).Answer([]byte(body))
			unnamed(t, <-c)
		}
		if len(r.status().Ingresses) != 0 || r.conn(p.relay).role != RoleUnbound {
			t.Errorf("%+v", r.status())
		}
		if got := r.told(IngressAnswerRefused); len(got) != 5 || got[0] != "ingress-registration-answer-refused node=node-a error=invalid-message" {
			t.Errorf("told %q", got)
		}
	})
}

// TestARetryThatIsTooLateGoesBack to the ingress, whose registration it is.
func TestARetryThatIsTooLateGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		cloud.on(registerMethod, func(q *typedsocket.Request) { q.Retry(10*time.Minute, "x") })
		a := p.ask(registerMethod, registrationOf("node-a", "b"))
		limit, ok := a.err.(*typedsocket.RetryLimitError)
		if !ok || limit.Wait != 10*time.Minute {
			t.Errorf("%v", a.err)
		}
	})
}

// TestBoundsOfRegistrations: of one socket, and of all.
func TestBoundsOfRegistrations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		var waiting []<-chan answered
		begin := func(p *remote, node string) {
			waiting = append(waiting, p.start(registerMethod, registrationOf(node, "b")))
			synctest.Wait()
		}
		begin(p, "node-a")
		begin(p, "node-a")
		declinedWith(t, p.ask(registerMethod, registrationOf("node-a", "b")), ownData(contract.IngressNotReady))
		for n := 2; n < maxRegistrations; n++ {
			begin(r.node(), fmt.Sprintf("node-%d", n))
		}
		declinedWith(t, r.node().ask(registerMethod, registrationOf("node-b", "b")), ownData(contract.IngressNotReady))
		if got := r.metrics.registrations.Of(registrationOverloaded).Value(); got != 2 {
			t.Errorf("counted %d", got)
		}
		for range waiting {
			cloud.next(registerMethod).Answer([]byte(acceptedText))
		}
		for _, c := range waiting {
			if a := <-c; a.err != nil {
				t.Error(a.err)
			}
		}
		r.ingress(cloud, "node-b")
		if got := len(r.status().Ingresses); got != maxRegistrations {
			t.Errorf("%d ingresses", got)
		}
	})
}

// TestAPlaceIsFreeBeforeTheAnswerLeaves: who keeps to the bounds must not be refused
// because the next request comes right behind an answer.
func TestAPlaceIsFreeBeforeTheAnswerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, q := r.cloudly(), r.node()
		p := r.ingress(cloud, "node-a")
		r.Ingress.mu.Lock()
		x := &registration{i: r.Ingress, p: r.peers[p.relay]}
		x.ticket, _ = r.roles.claim(x.p, "node-a")
		r.registering++
		r.Ingress.mu.Unlock()
		x.end(registrationAccepted, func() error {
			if got := r.status().InFlight; got != (InFlight{}) || r.roles.pending(x.p) != 0 {
				t.Errorf("%+v", got)
			}
			return nil
		})
		x.settle() // changes nothing more
		if got := r.status().InFlight; got != (InFlight{}) || r.roles.pending(x.p) != 0 {
			t.Errorf("%+v", got)
		}

		p.pages("node-a", 1)
		r.register(cloud, q, "node-b")
		var waiting []<-chan answered
		for range maxTraffic - 1 {
			after := contract.TrafficCursor{NodeID: "node-b"}.Text()
			waiting = append(waiting, cloud.start(trafficMethod, questionOf(&after)))
		}
		synctest.Wait()
		for range 500 {
			r.pageOf(cloud, nil)
		}
		for range waiting {
			q.next(trafficMethod).Refuse("no", nil)
		}
		for _, c := range waiting {
			<-c
		}
	})
}

// TestARegistrationThatBeginsLateIsNotSent: behind a refusal that ends custody nothing
// more is forwarded, although it was admitted before.
func TestARegistrationThatBeginsLateIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.register(cloud, p, "node-a")
		c := p.start("held", registrationOf("node-a", "b"))
		r.Ingress.mu.Lock()
		x := &registration{i: r.Ingress, p: r.peers[p.relay], upstream: cloud.relay}
		x.ticket, _ = r.roles.claim(x.p, "node-a")
		r.registering++
		r.Ingress.mu.Unlock()
		x.r = <-r.held
		r.Suspend(cloud.relay)
		x.carry()
		declinedWith(t, <-c, ownData(contract.IngressNotReady))
		if got := len(cloud.got(registerMethod)); got != 1 {
			t.Errorf("%d registrations came", got)
		}
	})
}

// R24: a stale credential is told where it is read, by code alone; the answer goes on
// to the ingress.
func TestR24_AStaleCredentialIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		for _, c := range []struct{ text, data string }{
			{"relay-credential-generation-stale: x", `{"code":"other"}`},
			{"relay-node-unknown", `{"code":"relay-node-unknown"}`},
			{"x", `{"code":"relay-credential-generation-stale","y":1}`},
		} {
			answer := p.start(registerMethod, registrationOf("node-a", "b"))
			cloud.next(registerMethod).Refuse(c.text, []byte(c.data))
			declinedWith(t, <-answer, c.data)
		}
		if got := r.staleTold(); len(got) != 1 || got[0] != `cloudly {"code":"relay-credential-generation-stale","y":1}` {
			t.Errorf("told %q", got)
		}
	})
}

// TestAPanicCostsOneRequest: no lock stays, and its value is not shown.
func TestAPanicCostsOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		cloud, p := r.cloudly(), r.node()
		r.conn(p.relay).fails = "a-secret-marker"
		c := p.start(registerMethod, registrationOf("node-a", "b"))
		cloud.next(registerMethod).Answer([]byte(acceptedText))
		unnamed(t, <-c)
		if got := r.status(); len(got.Ingresses) != 0 || got.InFlight.Registrations != 0 {
			t.Errorf("%+v", got)
		}
		if log := r.log.String(); !strings.Contains(log, "panic-recovered") || strings.Contains(log, "a-secret-marker") {
			t.Error(log)
		}
		r.ingress(cloud, "node-a")
	})
}

// TestNewJudgesItsConfiguration.
func TestNewJudgesItsConfiguration(t *testing.T) {
	call := newRig(t).cfg.Call
	if _, err := New(Config{Offer: contract.Offer{InterfacesVersion: "32.1.0", MinimumPeerVersion: "31.0.0"}, Call: call}); err == nil ||
		err.Error() != "ingress: own offer: minimumPeerVersion: is of another major than interfacesVersion" {
		t.Error(err)
	}
	if _, err := New(Config{Offer: ownOffer}); err == nil {
		t.Error("without a way to call")
	}
}

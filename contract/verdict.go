package contract

// verdict collects the rules a decoded value breaks, with the paths of the
// members that break them.
type verdict struct {
	findings
}

// reasonsOf runs one judgement and returns its reasons, nil when there are
// none.
func reasonsOf(judge func(*verdict)) []string {
	var v verdict
	judge(&v)
	return v.list()
}

// judged is a value with rules.
type judged interface {
	judge(v *verdict)
}

// in judges a member that is itself a value with rules.
func (v *verdict) in(member string, x judged) {
	v.enter(member)
	x.judge(v)
	v.leave()
}

// inEach judges every element of a member that is a list.
func inEach[T judged](v *verdict, member string, list []T) {
	v.enter(member)
	for i, x := range list {
		v.enterIndex(i)
		x.judge(v)
		v.leave()
	}
	v.leave()
}

// require records the rule when it does not hold.
func (v *verdict) require(holds bool, member, rule string) {
	if !holds {
		v.addAt(member, rule)
	}
}

func (v *verdict) identifier(member, s string) {
	v.require(IsIdentifier(s), member, "is not a canonical identifier")
}

func (v *verdict) nodeID(member, s string) {
	v.require(IsNodeID(s), member, "is not a node id")
}

func (v *verdict) digest(member, s string) {
	v.require(IsDigest(s), member, "is not a digest")
}

func (v *verdict) sha256(member, s string) {
	v.require(IsSHA256(s), member, "is not a bare sha-256")
}

func (v *verdict) counter(member string, n int64) {
	v.require(IsCounter(n), member, "is not a counter")
}

func (v *verdict) count(member string, n int64) {
	v.require(IsCount(n), member, "is not a count")
}

func (v *verdict) port(member string, n int64) {
	v.require(IsPort(n), member, "is not a port")
}

func (v *verdict) unixMilliseconds(member string, n int64) {
	v.require(IsUnixMilliseconds(n), member, "is not a time in unix milliseconds")
}

func (v *verdict) utcDay(member, s string) {
	v.require(IsUTCDay(s), member, "is not a utc day")
}

func (v *verdict) noiseKey(member, s string) {
	v.require(IsNoiseKey(s), member, "is not a canonical noise key")
}

func (v *verdict) ipv4(member, s string) {
	v.require(IsIPv4(s), member, string(AddressNotIPv4))
}

func (v *verdict) ipv4Prefix(member, s string) {
	v.require(IsIPv4Prefix(s), member, "is not a canonical ipv4 cidr")
}

func (v *verdict) listenAddress(member, s string) {
	if fault := JudgeListenAddress(s); fault != "" {
		v.addAt(member, string(fault))
	}
}

func (v *verdict) policyDomain(member, s string) {
	v.require(IsPolicyDomain(s), member, "is not a policy domain")
}

func (v *verdict) releaseVersion(member, s string) {
	v.require(IsReleaseVersion(s), member, "is not a release version")
}

func (v *verdict) relayOrigin(member, s string) {
	v.require(IsRelayOrigin(s), member, "is not a canonical https origin")
}

func (v *verdict) httpOrigin(member, s string) {
	v.require(IsHTTPOrigin(s), member, "is not a canonical http or https origin")
}

package origincert

import "serve.zone/relay/duty"

// Name is the name of this duty.
const Name = "tls"

// metrics are what the files count.
type metrics struct {
	set     *duty.Metrics
	loaded  *duty.Counter
	refused *duty.By[Refusal, duty.Counter]
}

func newMetrics(f *Files) *metrics {
	m := duty.NewMetrics(Name)
	m.Func("relay_tls_certificate_remaining_seconds", "Time until the certificate that is served expires, negative after it; 0 while there is none.",
		func() float64 {
			end := f.NotAfter()
			if end.IsZero() {
				return 0
			}
			return end.Sub(f.cfg.Wall()).Seconds()
		})
	return &metrics{
		set:     m,
		loaded:  m.Counter("relay_tls_loaded_pairs_total", "Certificates with their key that were taken up."),
		refused: duty.CounterBy(m, "relay_tls_refused_pairs_total", "Certificates or keys that were refused, by reason.", "reason", refusals),
	}
}

// Metrics returns what the files count.
func (f *Files) Metrics() *duty.Metrics { return f.metrics.set }

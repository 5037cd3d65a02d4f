package operator

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"serve.zone/relay/duty"
)

// newScrape returns the handler of /metrics, over a registry of its own.
func newScrape(o *Operator) http.Handler {
	return promhttp.HandlerFor(newRegistry(o), promhttp.HandlerOpts{
		ErrorLog:      o.cfg.Log.ErrorLog("metrics"),
		ErrorHandling: promhttp.ContinueOnError, // what can be shown is
		// Scrapers are near, and compressing costs more than it saves there.
		DisableCompression: true,
		EnableOpenMetrics:  true,
	})
}

func newRegistry(o *Operator) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collector{o},
	)
	return registry
}

// collector shows what the duties count. It describes nothing in advance: the
// names are the duties' own, and duty.Metrics has judged them.
type collector struct{ o *Operator }

// Describe describes nothing.
func (collector) Describe(chan<- *prometheus.Desc) {}

var (
	buildDesc = prometheus.NewDesc("relay_build_info",
		"What the relay was built from; the value is always 1.", []string{"version", "revision", "goversion"}, nil)
	readyDesc = prometheus.NewDesc("relay_ready",
		"Whether every required check is ok, as /readyz answers: 1 or 0.", nil, nil)
)

// Collect reads every set anew.
func (c collector) Collect(to chan<- prometheus.Metric) {
	b := c.o.cfg.Build
	to <- prometheus.MustNewConstMetric(buildDesc, prometheus.GaugeValue, 1, b.Version, b.Revision, goVersion())
	ready := 0.0
	if c.o.readiness(c.o.cfg.Wall()).Ready {
		ready = 1
	}
	to <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
	// duty.Gather over all sets would show none for one name that two of them
	// have; here the first one stands.
	seen := map[string]bool{}
	for _, r := range ask(c.o, askedMetrics, c.o.sets, gather) {
		for _, family := range r.value {
			if seen[family.Name] {
				c.o.metrics.lostFamilies.Inc()
				continue
			}
			seen[family.Name] = true
			collect(family, to)
		}
	}
}

func gather(set *duty.Metrics) ([]duty.Family, fault) {
	families, err := duty.Gather(set)
	if err != nil {
		return nil, unusable
	}
	return families, answered
}

// collect hands one family on.
func collect(family duty.Family, to chan<- prometheus.Metric) {
	var desc *prometheus.Desc
	for _, sample := range family.Samples {
		names, values := make([]string, len(sample.Labels)), make([]string, len(sample.Labels))
		for i, label := range sample.Labels {
			names[i], values[i] = label.Name, label.Value
		}
		if desc == nil {
			desc = prometheus.NewDesc(family.Name, family.Help, names, nil) // a family's series have one set of labels
		}
		to <- metricOf(desc, family.Kind, sample, values)
	}
}

func metricOf(desc *prometheus.Desc, kind duty.MetricKind, sample duty.Sample, labels []string) prometheus.Metric {
	switch kind {
	case duty.KindHistogram:
		buckets := make(map[float64]uint64, len(sample.Buckets))
		for i, bound := range duty.BucketBounds()[:len(sample.Buckets)] {
			buckets[bound] = sample.Buckets[i]
		}
		return prometheus.MustNewConstHistogram(desc, sample.Count, sample.Value, buckets, labels...)
	case duty.KindCounter:
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, sample.Value, labels...)
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, sample.Value, labels...)
}

package origincert

import (
	"log/slog"

	"serve.zone/relay/duty"
	"serve.zone/relay/duty/field"
)

// The types of the events about the origin's certificate.
const (
	EventLoaded      duty.EventType = "tls-certificate-loaded"
	EventRefused     duty.EventType = "tls-certificate-refused"
	EventLifted      duty.EventType = "tls-certificate-refusal-lifted"
	EventExpiresSoon duty.EventType = "tls-certificate-expires-soon"
	EventExpired     duty.EventType = "tls-certificate-expired"
)

// EventKinds is the table of the events about the certificate.
var EventKinds = []duty.EventKind{
	{Type: EventLoaded, Duty: Name, Level: slog.LevelInfo, Says: "A certificate for this host was taken up; new connections get it."},
	{Type: EventRefused, Duty: Name, Level: slog.LevelWarn, Says: "What stands in the certificate's files was refused, for this reason; the last good certificate is still served. Replace both files."},
	{Type: EventLifted, Duty: Name, Level: slog.LevelInfo, Says: "The files hold the certificate that is served again."},
	{Type: EventExpiresSoon, Duty: Name, Level: slog.LevelWarn, Says: "Less than a sixth of the certificate's life is left. See to its renewal."},
	{Type: EventExpired, Duty: Name, Level: slog.LevelError, Says: "The certificate that is served has expired; nodes will refuse it. Replace both files."},
}

func (f *Files) publish(t duty.EventType, fields ...field.Field) {
	if f.cfg.Events != nil {
		f.cfg.Events.Publish(t, fields...)
	}
}

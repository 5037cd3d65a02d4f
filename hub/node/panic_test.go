package node_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"serve.zone/relay/duty"
	"serve.zone/relay/hub/node"
	"serve.zone/relay/hub/node/nodetest"
	"serve.zone/relay/hub/tunnel"
)

// secret is the value of every panic here.
const secret = "5ec2e7-marker"

// trap panics in one place, once it is set.
type trap struct {
	*nodetest.Device
	place atomic.Value // the place that panics
}

func (d *trap) spring(place string) {
	if d.place.Load() == place {
		panic(secret)
	}
}

func (d *trap) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	d.spring("read at once")
	n, err := d.Device.Read(bufs, sizes, offset)
	d.spring("read")
	return n, err
}

func (d *trap) Write(bufs [][]byte, offset int) (int, error) {
	d.spring("write")
	return d.Device.Write(bufs, offset)
}

func (d *trap) Configure(s node.Settings) error {
	d.spring("configure")
	return d.Device.Configure(s)
}

func (d *trap) Close() error {
	d.spring("close")
	return d.Device.Close()
}

// A panic in any part of the client ends the client and the tunnel at once, as an error of
// Run, and is logged without its value.
func TestAPanicEndsTheClient(t *testing.T) {
	for place, spring := range map[string]func(r *rig){
		// While the tunnel stands.
		"read":   func(r *rig) { r.device.ToNode <- packet(nodetest.HubAddress, 100, 1) },
		"write":  func(r *rig) { r.device.ToNode <- packet(nodetest.HubAddress, 100, 1) },
		"move":   func(r *rig) { r.client.Move() },
		"close":  func(r *rig) { r.stop() },
		"onward": func(r *rig) { r.session().CloseWith(tunnel.CloseChanged, 0) }, // OnState, while a tunnel is given up
		// Before it does.
		"read at once": nil,
		"dial":         nil,
		"configure":    nil,
		"up":           nil, // OnState
		"stop":         func(r *rig) { r.stop() },
	} {
		t.Run(place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				device := &trap{Device: r.device}
				device.place.Store("")
				var log bytes.Buffer
				r.log = duty.NewLogger(duty.LogConfig{Out: &log, Level: -4})
				listen := r.net.ListenPacket(machine)
				var err error
				r.client, err = node.New(node.Config{Credential: credential(), Device: device, Log: r.log,
					ListenPacket: func(ctx context.Context, network, address string) (net.PacketConn, error) {
						device.spring("dial")
						device.spring("move")
						return listen(ctx, network, address)
					},
					OnState: func(s node.Status) {
						switch s.State {
						case node.StateUp:
							device.spring("up")
						case node.StateWaiting:
							device.spring("onward")
						case node.StateStopped:
							device.spring("stop")
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				if spring == nil {
					device.place.Store(place)
				}
				var ctx context.Context
				ctx, r.stop = context.WithCancel(context.Background())
				defer r.stop()
				ran := make(chan error, 1)
				go func() { ran <- r.client.Run(ctx) }()
				if spring != nil {
					r.state(node.StateUp, time.Second)
					device.place.Store(place)
					spring(r)
				}
				select {
				case err := <-ran:
					if !errors.Is(err, node.ErrPanicked) {
						t.Errorf("run ended with %v", err)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("the client goes on")
				}
				if s := r.client.Status(); s.State != node.StateStopped || s.Tunnel != nil {
					t.Errorf("%s, %+v", s.State, s.Tunnel)
				}
				if place == "close" {
					device.Device.Close() // for the one that reads
				}
				select {
				case <-r.device.Closed():
				default:
					t.Error("the device is open")
				}
				if left := r.net.Sockets(); len(left) != 1 || left[0] != hubAt {
					t.Errorf("sockets %v are open", left)
				}
				time.Sleep(time.Second)
				for len(r.hub.Sessions) > 0 {
					if s := r.session(); s.Conn.Context().Err() == nil {
						t.Error("the hub has not heard that the node is gone")
					}
				}
				if n := strings.Count(log.String(), `"panic-recovered"`); n != 1 || strings.Contains(log.String(), secret) {
					t.Errorf("the log tells of %d panics:\n%s", n, &log)
				}
			})
		})
	}
}

// Package subject starts, stops and watches over what is under test: the four
// workload controllers in a process of their own, as one replica or several that
// elect a leader.
//
// A subject is a black box. It is given a kubeconfig that leads to the fault
// proxy, the flags of kube-controller-manager, and exactly the rights its
// controllers need; it is judged by what it does to the API, never by its log.
package subject

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/history"
	"github.com/kube-gauntlet/gauntlet/harness/process"
)

// Options says what to start and how.
type Options struct {
	Target     Target
	Executable string
	Cluster    cluster.Cluster
	// Route opens a way to the API server for the replica of that name, and bends
	// its configuration, which leads straight there, to take it.
	Route func(replica string, config *rest.Config) error

	Replicas    int
	QPS, Burst  int // client-side rate limit of each controller's client
	Concurrency int // workers per controller

	StateDir string // for kubeconfigs: holds credentials, removed after the run
	LogDir   string
	Recorder *history.Recorder
}

// Subject is what is under test, running.
type Subject struct {
	options  Options
	admin    kubernetes.Interface
	replicas []*replica

	failed chan struct{}
	once   sync.Once
	err    error // set before failed is closed
}

// replica is one process of the subject.
type replica struct {
	name     string
	process  *process.Process
	mu       sync.Mutex
	stopping bool
}

// stopGrace is how long a subject may take to end after SIGTERM: its workers
// finish what they hold, and its lease is released.
const stopGrace = 5 * time.Second

// Start grants the subject its rights and starts its replicas. It does not wait
// until one leads; see WaitForLeader.
func Start(ctx context.Context, o Options) (*Subject, error) {
	admin, err := kubernetes.NewForConfig(o.Cluster.Config(cluster.Admin))
	if err != nil {
		return nil, fmt.Errorf("starting the subject: %w", err)
	}
	if err := grant(ctx, admin, o.Target); err != nil {
		return nil, fmt.Errorf("granting the subject its rights: %w", err)
	}
	s := &Subject{options: o, admin: admin, failed: make(chan struct{})}
	for i := range o.Replicas {
		r, err := s.startReplica(ctx, fmt.Sprintf("subject-%d", i))
		if err != nil {
			return nil, errors.Join(err, s.Stop(ctx))
		}
		s.replicas = append(s.replicas, r)
	}
	return s, nil
}

// WaitForLeader returns when a replica holds the lease, or with the error that
// one died of first.
func (s *Subject) WaitForLeader(ctx context.Context) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		lease, err := s.admin.CoordinationV1().Leases(leaseNamespace).Get(ctx, leaseName, metav1.GetOptions{})
		if err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no replica of the subject took the lease %s/%s; the end of its log:\n%s",
				leaseNamespace, leaseName, s.replicas[0].process.LogTail())
		case <-s.failed:
			return s.err
		case <-ticker.C:
		}
	}
}

// Failed is closed when a replica has ended and nobody asked it to.
func (s *Subject) Failed() <-chan struct{} { return s.failed }

// Err is nil until Failed is closed, then which replica ended and how.
func (s *Subject) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Stop ends every replica, within stopGrace and what a kill takes.
func (s *Subject) Stop(ctx context.Context) error {
	var all []error
	for _, r := range s.replicas {
		r.mu.Lock()
		r.stopping = true
		r.mu.Unlock()
		if err := r.process.Stop(ctx, stopGrace); err != nil {
			all = append(all, fmt.Errorf("stopping %s: %w", r.name, err))
		}
	}
	return errors.Join(all...)
}

func (s *Subject) startReplica(ctx context.Context, name string) (*replica, error) {
	config := s.options.Cluster.Config(cluster.Subject)
	if err := s.options.Route(name, config); err != nil {
		return nil, fmt.Errorf("opening a way to the API server for %s: %w", name, err)
	}
	kubeconfig := filepath.Join(s.options.StateDir, name+".kubeconfig")
	if err := cluster.WriteKubeconfig(kubeconfig, config); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p, err := process.Start(ctx, process.Spec{
		Name:    name,
		Path:    s.options.Executable,
		Args:    flags(s.options, kubeconfig),
		Env:     []string{"HOME=" + s.options.StateDir, "TMPDIR=" + s.options.StateDir, "PATH=" + os.Getenv("PATH")},
		LogPath: filepath.Join(s.options.LogDir, name+".log"),
	})
	if err != nil {
		return nil, err
	}
	r := &replica{name: name, process: p}
	s.note(r, history.ProcessStarted, "")
	go s.watch(r)
	return r, nil
}

// watch records the end of a replica, and fails the subject when nobody asked
// for it.
func (s *Subject) watch(r *replica) {
	<-r.process.Done()
	r.mu.Lock()
	stopping := r.stopping
	r.mu.Unlock()
	if stopping {
		s.note(r, history.ProcessStopped, r.process.Err().Error())
		return
	}
	s.note(r, history.ProcessDied, r.process.Err().Error())
	s.once.Do(func() {
		s.err = fmt.Errorf("the subject ended by itself: %w", r.process.Err())
		close(s.failed)
	})
}

func (s *Subject) note(r *replica, event history.ProcessEvent, detail string) {
	s.options.Recorder.Append(history.Record{Process: &history.Process{
		Name: r.name, Event: event, PID: r.process.PID(), Detail: detail,
	}})
}

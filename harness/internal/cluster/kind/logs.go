package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	kinderrors "sigs.k8s.io/kind/pkg/errors"
	kindexec "sigs.k8s.io/kind/pkg/exec"
	kindlog "sigs.k8s.io/kind/pkg/log"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/logfile"
)

const (
	// logsTimeout limits how long Stop writes logs before Stop removes the cluster.
	logsTimeout = 20 * time.Second
	// kubeletLines is the number of kubelet log lines that an error message contains.
	kubeletLines = 15
	// allLogsSubdir is the subdirectory of the log directory for the logs that kind exports.
	allLogsSubdir = "kind"
)

// components lists the components of the control plane. Stop writes one log file for each
// component.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// writeLogs writes the logs of the components and kubelets to the log directory. A log that cannot
// be read is left out, without an error.
//
// If all is true, writeLogs also exports all other logs of the nodes; see [Cluster.ExportLogs].
func (c *Cluster) writeLogs(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	var writes errgroup.Group
	for _, component := range components {
		writes.Go(func() error {
			// A restarted container has several log files; ls sorts the oldest file first.
			script := "cat $(ls -tr /var/log/pods/kube-system_" + component + "-*/*/*.log)"
			return c.writeLog(ctx, component, c.nodes[0], "sh", "-c", script)
		})
	}
	for _, node := range c.nodes {
		writes.Go(func() error {
			return c.writeLog(ctx, "kubelet-"+strings.TrimPrefix(node, c.name+"-"), node, "journalctl", "--unit", "kubelet", "--no-pager")
		})
	}
	_ = writes.Wait()
	if all {
		_ = c.ExportLogs(ctx, filepath.Join(c.logDir, allLogsSubdir))
	}
}

// writeLog runs a command on a node and writes the command's output to <name>.log in the log
// directory. Package logfile limits the size of the file. If the command fails, writeLog removes
// the file and returns an error.
func (c *Cluster) writeLog(ctx context.Context, name, node string, command ...string) error {
	path := filepath.Join(c.logDir, name+".log")
	log, err := logfile.Open(path)
	if err != nil {
		return err
	}
	err = c.engine.copy(ctx, logsTimeout, log, append([]string{"exec", node}, command...)...)
	if err := errors.Join(err, log.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

var _ cluster.LogExporter = (*Cluster)(nil)

// ExportLogs writes the logs of `kind export logs` to a directory. It shortens files that are too
// large for package logfile.
//
// If the nodes have no crictl, the list of images is missing. If ctx is canceled, ExportLogs
// returns an error, and some logs may be missing.
func (c *Cluster) ExportLogs(ctx context.Context, dir string) error {
	exported := make(chan error, 1)
	go func() {
		provider := kindcluster.NewProvider(kindcluster.ProviderWithDocker())
		err := explain(withoutImageLists(provider.CollectLogs(c.name, dir)))
		exported <- errors.Join(err, trimLogs(dir))
	}()
	select {
	case err := <-exported:
		return err
	case <-ctx.Done():
		return fmt.Errorf("exporting the logs of %s: %w", c.name, context.Cause(ctx))
	}
}

// withoutImageLists removes failures of `crictl` commands from err, the error of a log export. If
// nothing else failed, the result is nil.
//
// kind lists the images of each node with crictl. The node image that `make node-image` builds does
// not contain crictl. Such a list is not a log, so the failure does not matter.
func withoutImageLists(err error) error {
	parts := kinderrors.Errors(err)
	if len(parts) == 0 {
		if run := kindexec.RunErrorForError(err); run != nil && slices.Contains(run.Command, "crictl") {
			return nil
		}
		return err
	}
	var others []error
	for _, part := range parts {
		if part = withoutImageLists(part); part != nil {
			others = append(others, part)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return kinderrors.NewAggregate(others)
}

// trimLogs shortens files in a directory and its subdirectories that are too large for package
// logfile.
func trimLogs(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return logfile.Trim(path)
	})
}

// kubeletLog returns the last lines of a node's kubelet log for an error message. It returns "" if
// the log cannot be read.
func (c *Cluster) kubeletLog(ctx context.Context, node string) string {
	out, err := c.engine.run(ctx, engineQueryTimeout, "exec", node,
		"journalctl", "--unit", "kubelet", "--no-pager", "--output", "cat", "--lines", fmt.Sprint(kubeletLines))
	if err != nil {
		return ""
	}
	return out
}

// kindLog is a logger that writes the messages of kind to a file, with the time of each message.
type kindLog struct{ file *logfile.File }

var _ kindlog.Logger = (*kindLog)(nil)

// openKindLog returns a kindLog that appends to the file at path, which only the owner can read.
func openKindLog(path string) (*kindLog, error) {
	file, err := logfile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening log file %s for the messages of kind: %w", path, err)
	}
	return &kindLog{file}, nil
}

// line formats a message and writes it as one line to the file, with the time of day in front.
func (l *kindLog) line(format string, args ...any) {
	fmt.Fprintf(l.file, time.Now().Format("15:04:05.000 ")+strings.TrimRight(format, "\n")+"\n", args...)
}

// Warn writes a warning to the log file.
func (l *kindLog) Warn(message string) { l.line("%s", message) }

// Warnf writes a formatted warning to the log file.
func (l *kindLog) Warnf(format string, args ...any) { l.line(format, args...) }

// Error writes an error message to the log file.
func (l *kindLog) Error(message string) { l.line("%s", message) }

// Errorf writes a formatted error message to the log file.
func (l *kindLog) Errorf(format string, args ...any) { l.line(format, args...) }

// V returns the logger for messages of one verbosity level. The loggers of levels 0 to 3, which
// include the output of kubeadm, write to the file. The loggers of higher levels drop all messages.
func (l *kindLog) V(level kindlog.Level) kindlog.InfoLogger {
	return kindInfo{l, level <= 3}
}

// kindInfo is the logger for the messages of one verbosity level of kind. It implements kind's
// interface InfoLogger.
type kindInfo struct {
	log     *kindLog
	enabled bool // if false, Info and Infof drop messages
}

// Info writes a message to the log file if this verbosity level is enabled.
func (i kindInfo) Info(message string) { i.Infof("%s", message) }

// Infof writes a formatted message to the log file if this verbosity level is enabled.
func (i kindInfo) Infof(format string, args ...any) {
	if i.enabled {
		i.log.line(format, args...)
	}
}

// Enabled reports whether Info and Infof write messages to the log file.
func (i kindInfo) Enabled() bool { return i.enabled }

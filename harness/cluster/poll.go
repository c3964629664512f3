package cluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Poll calls its argument condition immediately, and then once per interval, until condition
// returns nil. If ctx is canceled first, Poll returns an error. The error message begins with
// "waiting for DESCRIPTION". It contains the cause of the cancellation and the last error of
// condition.
func Poll(ctx context.Context, interval time.Duration, description string, condition func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	last := errors.New("the first check was not complete")
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err // after a cancellation, err only repeats that ctx is canceled
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return &waitError{description, context.Cause(ctx), last}
		}
	}
}

// waitError is the error of [Poll]: why the wait has ended, and the last error of the condition.
type waitError struct {
	description string
	cause, last error
}

func (e *waitError) Error() string {
	cause := e.cause.Error()
	if errors.Is(e.cause, context.DeadlineExceeded) {
		cause = "not ready in time"
	}
	return fmt.Sprintf("waiting for %s: %s; last error: %s", e.description, cause, ConnectionReason(e.last))
}

func (e *waitError) Unwrap() []error { return []error{e.cause, e.last} }

// These patterns match the errors of Go's network packages.
var (
	// requestPattern matches the address of a failed HTTP request and, if the connection failed, that of the
	// connection. The group is the URL.
	requestPattern = regexp.MustCompile(`\b(?:Get|Head|Post|Put|Patch|Delete) "([^"?]*)(?:\?[^"]*)?": (?:(?:dial|read|write) tcp[46]?(?: [^ ]*)?: )?`)
	// dialPattern matches a failed connection. The group is the address.
	dialPattern = regexp.MustCompile(`\b(?:dial|read|write) (?:tcp|udp|unix)[46]? ([^ ]*): `)
	// hostPattern matches a host name without an address. The group is the name.
	hostPattern = regexp.MustCompile(`(?:dial (?:tcp|udp)[46]?: )?lookup (\S+?)(?: on \S+)?: no such host`)
	// systemCallPattern matches the name of the failed system call before its error.
	systemCallPattern = regexp.MustCompile(`: (?:connect|read|write): (connection|no route|network|i/o|no such file|permission|broken pipe|operation)`)
	// htmlPattern matches the error for an HTML response. Another server, such as a proxy, sent it.
	htmlPattern = regexp.MustCompile(`(?is)(?:serializer for text/html doesn't exist|<!doctype html|<html).*$`)
	// plainPattern matches a connection with TLS to a server without TLS.
	plainPattern = regexp.MustCompile(`tls: first record does not look like a TLS handshake|http: server gave HTTP response to HTTPS client`)
)

// ConnectionReason returns the text of an error of a connection without the terms of Go's network
// packages. An example is "https://127.0.0.1:6443/readyz: connection refused".
func ConnectionReason(err error) string {
	if htmlPattern.MatchString(err.Error()) {
		return htmlPattern.ReplaceAllString(err.Error(), "found a response in HTML; expected an API server at this address")
	}
	text := hostPattern.ReplaceAllString(err.Error(), "found no address of host $1; expected a host that this machine can resolve")
	text = requestPattern.ReplaceAllString(text, "$1: ")
	text = dialPattern.ReplaceAllString(text, "$1: ")
	text = plainPattern.ReplaceAllString(text, "found a server without TLS; expected a server with TLS")
	return systemCallPattern.ReplaceAllString(text, ": $1")
}

// NodeSchedulable returns nil if the scheduler can assign pods to the node, and otherwise the
// reason. The node must be healthy (see [NodeHealthy]) and not cordoned.
func NodeSchedulable(node *corev1.Node) error {
	if err := NodeHealthy(node); err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		return fmt.Errorf("node %s is cordoned", node.Name)
	}
	return nil
}

// NodeHealthy returns nil if the node is Ready and has no taint of the node lifecycle controller.
// Otherwise, NodeHealthy returns the reason. The node lifecycle controller's taints have keys that
// begin with node.kubernetes.io/.
//
// A cordoned node can be healthy. NodeHealthy also ignores taints that users set on purpose, such
// as a control plane node's taint.
func NodeHealthy(node *corev1.Node) error {
	if !Ready(node) {
		return fmt.Errorf("node %s is not Ready", node.Name)
	}
	for _, taint := range node.Spec.Taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") && taint.Key != corev1.TaintNodeUnschedulable {
			return fmt.Errorf("node %s still has taint %s", node.Name, taint.Key)
		}
	}
	return nil
}

// Ready reports whether the node's Ready condition is True.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodReady reports whether the pod's Ready condition is True.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// PodCollapsed is the status.reason of pods that the fault pod-churn has made Failed. With the
// action "collapse", this fault sets a pod's phase to Failed, but leaves the Ready condition True.
//
// Simulated kubelets recognize such pods by this reason, and leave their Ready condition unchanged.
// On all other Failed pods, simulated kubelets set the condition to False.
const PodCollapsed = "Collapsed"

package deployment

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Annotations that users and their tools read.
const (
	// revisionAnnotation numbers the templates of a Deployment, on each
	// ReplicaSet and, with the newest, on the Deployment.
	revisionAnnotation = "deployment.kubernetes.io/revision"
	// historyAnnotation lists the revisions that a ReplicaSet had before.
	historyAnnotation = "deployment.kubernetes.io/revision-history"
	// desiredReplicasAnnotation and maxReplicasAnnotation say for which number
	// of replicas, without and with surge, a ReplicaSet was sized.
	desiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// maxHistoryLength is the length of a revision history, in characters.
const maxHistoryLength = 2000

// annotationsToSkip are the annotations that the Deployment and its ReplicaSets each have for
// themselves; all others go from one to the other.
var annotationsToSkip = []string{
	corev1.LastAppliedConfigAnnotation,
	revisionAnnotation,
	historyAnnotation,
	desiredReplicasAnnotation,
	maxReplicasAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// parseReplicas reads a number of replicas from an annotation.
func parseReplicas(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > math.MaxInt32 {
		return 0, false
	}
	return int(n), true
}

// withReplicasAnnotations returns annotations that say for which limits a ReplicaSet is sized.
func withReplicasAnnotations(annotations map[string]string, l limits) map[string]string {
	return withEntries(annotations, map[string]string{
		desiredReplicasAnnotation: strconv.Itoa(l.replicas),
		maxReplicasAnnotation:     strconv.Itoa(l.maxReplicas()),
	})
}

// withRevision returns annotations that give at least revision, and keep in the
// history the one that it replaces. A revision is never lowered: ReplicaSets
// with higher ones may have been deleted.
func withRevision(annotations map[string]string, revision int64) map[string]string {
	before, had := revisionOf(annotations)
	if had && before >= revision {
		return annotations
	}
	changed := map[string]string{revisionAnnotation: strconv.FormatInt(revision, 10)}
	if had {
		changed[historyAnnotation] = appendRevision(annotations[historyAnnotation], strconv.FormatInt(before, 10))
	}
	return withEntries(annotations, changed)
}

// appendRevision appends a revision to a history, and drops the oldest ones as far as
// length demands.
func appendRevision(history, revision string) string {
	if history == "" {
		return revision
	}
	history += "," + revision
	for len(history) > maxHistoryLength {
		_, history, _ = strings.Cut(history, ",")
	}
	return history
}

// revisionOf reads the revision; a malformed or absent one is none.
func revisionOf(annotations map[string]string) (int64, bool) {
	revision, err := strconv.ParseInt(annotations[revisionAnnotation], 10, 64)
	return revision, err == nil
}

// withInheritedAnnotations returns the annotations of a ReplicaSet with those of its
// Deployment added. None is taken away.
func withInheritedAnnotations(annotations, deployment map[string]string) map[string]string {
	return withEntries(annotations, inheritable(deployment))
}

// annotationsAfterRollback returns the annotations of a Deployment that goes back to the
// template of a ReplicaSet: its own, and what that ReplicaSet once had from it.
// The wish to roll back is fulfilled, and gone.
func annotationsAfterRollback(deployment, set map[string]string) map[string]string {
	annotations := inheritable(set)
	for _, key := range annotationsToSkip {
		if value, has := deployment[key]; has && key != appsv1.DeprecatedRollbackTo {
			annotations[key] = value
		}
	}
	return annotations
}

func inheritable(annotations map[string]string) map[string]string {
	rest := make(map[string]string, len(annotations))
	for key, value := range annotations {
		if !slices.Contains(annotationsToSkip, key) {
			rest[key] = value
		}
	}
	return rest
}

// withEntries returns annotations with changed on top: the same map if that changes
// nothing, a new one otherwise.
func withEntries(annotations, changed map[string]string) map[string]string {
	same := true
	for key, value := range changed {
		if had, has := annotations[key]; !has || had != value {
			same = false
		}
	}
	if same {
		return annotations
	}
	merged := make(map[string]string, len(annotations)+len(changed))
	maps.Copy(merged, annotations)
	maps.Copy(merged, changed)
	return merged
}

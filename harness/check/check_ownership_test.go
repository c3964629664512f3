package check

import (
	"testing"
	"time"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

func TestOwnership(t *testing.T) {
	judge(t, "ownership", []tale{
		{name: "deletes its own", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 2)
			s.delete(pods[0])
		}},
		{name: "deletes another controller's pod", want: Fail, says: "subject-0 deleted pod web-1, which by its view ConfigMap foreign controls", tell: func(s *story) {
			told(s, 1)
			pod := s.pod(foreign(), "web")
			s.deliver(pod)
			s.delete(pod)
		}},
		{name: "deletes an orphan", want: Fail, says: "nobody controls", tell: func(s *story) {
			told(s, 0)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.delete(pod)
		}},
		{name: "deletes a pod that was orphaned within the lag (trap 23)", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 2)
			s.deliver(s.strip(pods[0]))
			s.delete(pods[0])
		}},
		{name: "deletes a pod orphaned long ago", want: Fail, says: "nobody controls", tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 2)
			s.deliver(s.strip(pods[0]))
			s.wait(3 * time.Second)
			s.delete(pods[0])
		}},
		{name: "deletes what it has just adopted", want: Pass, tell: func(s *story) {
			rs := told(s, 0)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs).answered(200)
			s.wait(2 * time.Second)
			s.delete(pod)
		}},
		{name: "adopts an orphan after a live read", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs)
		}},
		{name: "adopts without a live read (R10)", want: Fail, says: "without having read that live", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.adopt(pod, rs)
		}},
		{name: "takes back, without a live read, what it was told is no longer its own (R10)", want: Fail, says: "without having read that live", tell: func(s *story) {
			rs := told(s, 2)
			pods := s.running(rs, 2)
			s.deliver(s.strip(pods[0]))
			s.adopt(pods[0], rs)
		}},
		{name: "takes back what it was told is no longer its own", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.running(rs, 2)
			s.deliver(s.strip(pods[0]))
			s.readLive(rs)
			s.adopt(pods[0], rs)
		}},
		{name: "adopts what it has been told is its own by now", want: Pass, tell: func(s *story) {
			rs := told(s, 2)
			pods := s.running(rs, 2)
			s.adopt(pods[0], rs)
		}},
		{name: "adopts after a live read that came too early", want: Fail, says: "without having read that live", tell: func(s *story) {
			rs := told(s, 1)
			s.readLive(rs)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.adopt(pod, rs)
		}},
		{name: "adopts though the live read showed it terminating", want: Fail, says: "without having read that live", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.terminate(rs)
			s.readLive(rs)
			s.adopt(pod, rs)
		}},
		{name: "adopts again before it sees that it did", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs).lost()
			s.readLive(rs)
			s.adopt(pod, rs).answered(200)
		}},
		{name: "adopts an orphan that either of two may have (trap 25)", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			s.deliver(s.owner(replicaSets, "other", "web", 1))
			pod := s.pod(nil, "web")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs)
		}},
		{name: "adopts a pod that does not match", want: Fail, says: "adopted", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(nil, "other")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs)
		}},
		{name: "adopts a failed pod (trap 21)", want: Fail, says: "adopted", tell: func(s *story) {
			rs := told(s, 1)
			failed := s.fail(s.pod(nil, "web"))
			s.deliver(failed)
			s.readLive(rs)
			s.adopt(failed, rs)
		}},
		{name: "adopts another controller's pod", want: Fail, says: "ConfigMap foreign controls", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(foreign(), "web")
			s.deliver(pod)
			s.readLive(rs)
			s.adopt(pod, rs)
		}},
		{name: "releases what matches no more", want: Pass, tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 1)
			s.deliver(s.relabel(pods[0], "other"))
			s.release(pods[0], rs)
		}},
		{name: "releases what still matches", want: Fail, says: "released from ReplicaSet ns/web", tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 1)
			s.release(pods[0], rs)
		}},
		{name: "releases another controller's pod", want: Fail, says: "wrote to", tell: func(s *story) {
			rs := told(s, 1)
			pod := s.pod(foreign(), "web")
			s.deliver(pod)
			s.release(pod, rs)
		}},
		{name: "labels a bystander", want: Fail, says: "wrote to", tell: func(s *story) {
			told(s, 1)
			pod := s.pod(nil, "other")
			s.deliver(pod)
			s.patch(pod, `{"metadata":{"labels":{"a":"b"}}}`)
		}},
		{name: "two controllers", want: Fail, says: "has 2 controllers", tell: func(s *story) {
			rs := told(s, 1)
			pods := s.running(rs, 1)
			twice := *pods[0]
			twice.Owners = append(controlledBy(rs), controlledBy(foreign())...)
			s.commit(history.Modified, twice)
		}},
	})
}

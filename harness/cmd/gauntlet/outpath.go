package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kube-gauntlet/gauntlet/harness/inputfile"
	"github.com/kube-gauntlet/gauntlet/harness/internal/explore"
	"github.com/kube-gauntlet/gauntlet/harness/internal/outputfile"
	"github.com/kube-gauntlet/gauntlet/harness/run"
	"github.com/kube-gauntlet/gauntlet/reports"
)

// writable is the mode for access(2) of a directory in which gauntlet creates files: W_OK and X_OK.
const writable = 0o3

// checkDirectory returns an error if the value of a flag is no directory for output. The directory
// need not exist, but it must be possible to create it. An empty path means that the flag is not
// set.
func checkDirectory(flag, path string) error {
	if path == "" {
		return nil
	}
	parent, err := existing(path)
	switch {
	case err != nil:
		return fmt.Errorf("--%s=%s: %w; expected a directory", flag, path, inputfile.Reason(err))
	case parent != filepath.Clean(path):
		err = checkParent(parent)
	case !isDirectory(path):
		return fmt.Errorf("--%s=%s: found a file; expected a directory", flag, path)
	default:
		err = syscall.Access(path, writable)
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: %w; expected a directory in which files can be created", flag, path, err)
	}
	return nil
}

// existing returns the path itself, or the nearest directory above it that exists. It returns an
// error for a symbolic link that leads nowhere.
func existing(path string) (string, error) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		_, err := os.Stat(path)
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if _, linkErr := os.Lstat(path); absent && linkErr == nil {
			return path, fmt.Errorf("found the symbolic link %s, which leads nowhere", path)
		}
		if err == nil || !absent || path == filepath.Dir(path) {
			return path, err
		}
	}
}

// isDirectory reports whether a path is that of a directory.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// checkParent returns an error if no directory can be created in a directory. To find out, it
// creates one and removes it again, because some file systems, such as /proc, look writable.
func checkParent(dir string) error {
	if !isDirectory(dir) {
		return fmt.Errorf("%s is a file", dir)
	}
	probe, err := os.MkdirTemp(dir, ".gauntlet-*")
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return nil // not a mistake of the user
	case err != nil:
		return fmt.Errorf("cannot create a directory in %s: %w", dir, inputfile.Reason(err))
	}
	return os.Remove(probe)
}

// checkFile returns an error if the value of a flag is no file for output. The file need not exist,
// but its directory must.
func checkFile(flag, path string) error {
	if isDirectory(path) {
		return fmt.Errorf("--%s=%s: found a directory; expected a file", flag, path)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil // a device or a pipe, such as /dev/stdout
	}
	dir := outputfile.Directory(path)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		err = inputfile.Reason(err)
	case !info.IsDir():
		err = errors.New("found a file")
	default:
		err = syscall.Access(dir, writable)
	}
	if err != nil {
		return fmt.Errorf("--%s=%s: directory %s: %w; create the directory, or name a file in another one", flag, path, dir, err)
	}
	return nil
}

// checkSearchDirectory returns an error if "gauntlet explore" cannot use the directory of --dir. A
// directory with the plan of a search is valid, because the command continues this search.
func checkSearchDirectory(dir string) error { return checkOwnDirectory("dir", dir, explore.PlanName) }

// checkCampaignDirectory returns an error if a command cannot write the report of a fleet's campaign
// to a directory. A directory with an earlier report of a campaign is valid.
func checkCampaignDirectory(dir string) error { return checkOwnDirectory("out", dir, failuresName) }

// checkOwnDirectory returns an error if a command cannot write its reports to a directory. The
// directory is valid if it has the file named own, which such a command has written.
func checkOwnDirectory(flag, dir, own string) error {
	if err := checkDirectory(flag, dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, own)); err == nil {
		return nil
	}
	return checkReports(flag, dir)
}

// checkReports returns an error if reports in a directory would replace files of something else.
// That is another run, campaign or search, or files that gauntlet did not write.
func checkReports(flag, dir string) error {
	for _, other := range []struct{ file, kind string }{
		{filepath.Base(run.HistoryFile(dir)), "a run"},
		{explore.PlanName, "a search of gauntlet explore"},
		{failuresName, "a campaign"},
	} {
		if _, err := os.Lstat(filepath.Join(dir, other.file)); err == nil {
			return fmt.Errorf("--%s=%s: found the directory of %s; expected another directory, because the reports would replace the verdicts there", flag, dir, other.kind)
		}
	}
	if _, err := reports.ReadDirectory(dir); err == nil {
		return nil // an earlier report
	}
	for _, name := range reports.FileNames() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("--%s=%s: found the file %s, but no valid report of gauntlet; expected another directory, because the reports would replace this file", flag, dir, name)
		}
	}
	return nil
}

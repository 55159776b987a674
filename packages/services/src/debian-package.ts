import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { withFileLock } from './file-lock.js'
import { ServiceError } from './service-error.js'

/**
 * Updates the package lists only when the install fails without. The policy file keeps a package from starting a
 * daemon; an existing policy file belongs to the system. The shell removes ours even when the calling process has died.
 */
const INSTALL = `
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' HUP INT TERM
  printf '#!/bin/sh\\nexit 101\\n' >"$policy"
  chmod 755 "$policy"
fi
install() { apt-get -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$1"; }
install "$1" || { apt-get update && install "$1"; }
`
const INSTALL_TIMEOUT_MS = 300_000
const LOCK = path.join(tmpdir(), 'webmq-apt-get.lock')

/** Whether this process can install Debian packages: on Debian or a derivative, as root. */
export function canInstallPackages(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && existsSync('/usr/bin/apt-get')
}

/**
 * Installs a Debian package, one at a time over all processes. It starts no daemon.
 * @throws {ServiceError} with the end of apt-get's output.
 */
export async function installPackage(name: string): Promise<void> {
  await withFileLock(LOCK, INSTALL_TIMEOUT_MS, async () => {
    try {
      await promisify(execFile)('/bin/sh', ['-c', INSTALL, 'install', name], {
        timeout: INSTALL_TIMEOUT_MS,
        maxBuffer: 16 * 1024 * 1024,
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      })
    } catch (cause) {
      throw new ServiceError(`the package ${name} could not be installed: ${String(cause).slice(-2_000)}`, cause)
    }
  })
}

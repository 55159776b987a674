import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

export type BalancerName = 'haproxy' | 'nginx'

/** The source of the program. */
export interface BalancerProgram {
  readonly file: string
  readonly source: 'binary' | 'package'
}

/** Debian's folder for them is only on root's PATH. */
const FOLDERS = ['/usr/sbin']
/** What the program is in, without modules that nobody here needs. */
const PACKAGES: Readonly<Record<BalancerName, string>> = { haproxy: 'haproxy', nginx: 'nginx-light' }

const found = new Map<BalancerName, Promise<BalancerProgram>>()

/**
 * The program of a load balancer: on PATH, else the Debian package.
 * @throws {ServiceError} with instructions when there is neither.
 */
export function obtainBalancer(name: BalancerName): Promise<BalancerProgram> {
  const known = found.get(name)
  if (known !== undefined) return known
  // Concurrent calls install once. A failed call is forgotten, because the program may be installed later.
  const searched = search(name).catch((error: unknown) => {
    found.delete(name)
    throw error
  })
  found.set(name, searched)
  return searched
}

async function search(name: BalancerName): Promise<BalancerProgram> {
  const file = findProgram(name, FOLDERS)
  if (file !== undefined) return { file, source: 'binary' }
  if (canInstallPackages()) {
    await installPackage(PACKAGES[name])
    const installed = findProgram(name, FOLDERS)
    if (installed !== undefined) return { file: installed, source: 'package' }
  }
  throw new ServiceError(`a load balancer needs ${name}: put it on PATH`)
}

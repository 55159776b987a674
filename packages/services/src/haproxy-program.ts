import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

/** The source of the program. */
export interface HaproxyProgram {
  readonly file: string
  readonly source: 'binary' | 'package'
}

/** Debian's folder for it is only on root's PATH. */
const FOLDERS = ['/usr/sbin']

let found: Promise<HaproxyProgram> | undefined

/**
 * The program of HAProxy: on PATH, else the Debian package.
 * @throws {ServiceError} with instructions when there is neither.
 */
export async function obtainHaproxy(): Promise<HaproxyProgram> {
  // Concurrent calls install once. A failed call is forgotten, because the program may be installed later.
  found ??= search().catch((error: unknown) => {
    found = undefined
    throw error
  })
  return await found
}

async function search(): Promise<HaproxyProgram> {
  const file = findProgram('haproxy', FOLDERS)
  if (file !== undefined) return { file, source: 'binary' }
  if (canInstallPackages()) {
    await installPackage('haproxy')
    const installed = findProgram('haproxy', FOLDERS)
    if (installed !== undefined) return { file: installed, source: 'package' }
  }
  throw new ServiceError('a load balancer needs HAProxy: put haproxy on PATH')
}

import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

/** Where the program comes from. */
export interface HaproxyProgram {
  readonly file: string
  readonly source: 'binary' | 'package'
}

/** Debian puts it where only root's PATH leads to. */
const FOLDERS = ['/usr/sbin']

let found: Promise<HaproxyProgram> | undefined

/**
 * The program of HAProxy: on PATH, else the Debian package.
 * @throws {ServiceError} that says what to do when there is neither.
 */
export async function obtainHaproxy(): Promise<HaproxyProgram> {
  // Two that start at once do not install twice; who failed may have been helped meanwhile.
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

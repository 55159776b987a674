import { canInstallPackages, installPackage } from './debian-package.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

/** The source of the program. */
export interface DebianProgram {
  readonly file: string
  readonly source: 'binary' | 'package'
}

/** Debian's folder for some is only on root's PATH. */
const FOLDERS = ['/usr/sbin']

const found = new Map<string, Promise<DebianProgram>>()

/**
 * A program: on PATH, else of the Debian package.
 * @param need Begins the error: who needs it.
 * @throws {ServiceError} with instructions when there is neither.
 */
export function obtainDebianProgram(name: string, debianPackage: string, need: string): Promise<DebianProgram> {
  const known = found.get(name)
  if (known !== undefined) return known
  // Concurrent calls install once. A failed call is forgotten, because the program may be installed later.
  const searched = search(name, debianPackage, need).catch((error: unknown) => {
    found.delete(name)
    throw error
  })
  found.set(name, searched)
  return searched
}

async function search(name: string, debianPackage: string, need: string): Promise<DebianProgram> {
  const file = findProgram(name, FOLDERS)
  if (file !== undefined) return { file, source: 'binary' }
  if (canInstallPackages()) {
    await installPackage(debianPackage)
    const installed = findProgram(name, FOLDERS)
    if (installed !== undefined) return { file: installed, source: 'package' }
  }
  throw new ServiceError(`${need} ${name}: put it on PATH`)
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from './cache-folder.js'
import { withFileLock } from './file-lock.js'
import { findProgram } from './find-program.js'
import { ServiceError } from './service-error.js'

/** With nothing cached it takes a minute on one core. */
const BUILD_TIMEOUT_MS = 600_000
const QUERY_TIMEOUT_MS = 60_000

/** The `go` of this machine; `undefined` without. */
export function findGo(): string | undefined {
  return findProgram('go', ['/usr/local/go/bin'])
}

/**
 * The number of a version: of `v2.14` the newest patch, of `latest` the newest release.
 * @param module Its path, without that of a package in it.
 * @throws {ServiceError} with the end of Go's output.
 */
export async function newestOf(go: string, module: string, query: string): Promise<string> {
  const args = ['list', '-m', '-f', '{{.Version}}', `${module}@${query}`]
  return (await runGo(go, args, { timeout: QUERY_TIMEOUT_MS })).trim()
}

/**
 * Builds a program into a folder, once, and under a lock. Finds it built.
 * @param isForSpeed Without, it is built in half of the time, and runs slower.
 * @returns its path
 * @throws {ServiceError} with the end of Go's output.
 */
export async function goInstall(
  go: string,
  program: string,
  version: string,
  folder: string,
  isForSpeed = true,
): Promise<string> {
  const file = path.join(folder, programName(program))
  if (existsSync(file)) return file
  await mkdir(folder, { recursive: true })
  await withFileLock(`${folder}.lock`, BUILD_TIMEOUT_MS, async () => {
    if (existsSync(file)) return
    // Go moves the finished program into place, so nobody sees an incomplete one.
    const flags = isForSpeed ? [] : ['-gcflags=all=-N -l', '-ldflags=-w']
    await runGo(go, ['install', ...flags, `${program}@${version}`], { timeout: BUILD_TIMEOUT_MS, folder })
  })
  return file
}

/** A program that Go builds. */
export interface GoProgram {
  readonly name: string
  /** Path of its package. */
  readonly program: string
  readonly version: string
  /** Default true; false: it is built in half of the time, and runs slower. */
  readonly isForSpeed?: boolean
}

/**
 * Builds a program into the cache folder, once.
 * @returns its path
 * @throws {ServiceError} with instructions when there is no Go, or with the end of its output.
 */
export async function obtainGoProgram({ name, program, version, isForSpeed }: GoProgram): Promise<string> {
  const folder = path.join(cacheFolder(), `${name}-${version}`)
  const file = path.join(folder, programName(program))
  if (existsSync(file)) return file
  const go = findGo()
  if (go === undefined) throw new ServiceError(`${name} is needed: put it on PATH, or install Go, which builds it`)
  return await goInstall(go, program, version, folder, isForSpeed)
}

/** As Go names it: by the last part of its path, without a major version. */
function programName(program: string): string {
  return path.posix.basename(program.replace(/\/v\d+$/, ''))
}

async function runGo(
  go: string,
  args: readonly string[],
  { timeout, folder }: { readonly timeout: number; readonly folder?: string },
): Promise<string> {
  // Without C, whose compiler not every machine has.
  const env = { ...process.env, GOFLAGS: '', CGO_ENABLED: '0', ...(folder !== undefined && { GOBIN: folder }) }
  try {
    return (await promisify(execFile)(go, args, { env, timeout, cwd: '/' })).stdout
  } catch (cause) {
    throw new ServiceError(`go ${args.join(' ')}: ${String(cause).slice(-2_000)}`, cause)
  }
}

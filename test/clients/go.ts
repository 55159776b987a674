import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { ROOT } from '../deploy/files.js'

const run = promisify(execFile)

export const GO_FOLDER = `${ROOT}clients/go`
/** Go may have to load a package, or itself in the version of go.mod. */
const LOAD_MS = 120_000

/** The adapter of the client for Go, or why there is none. */
export type FoundGo =
  | { readonly adapter: string; readonly missing?: undefined }
  | { readonly missing: string; readonly adapter?: undefined }

/**
 * Builds the adapter into the repository's cache, where Go is.
 * @throws {Error} It does not compile.
 */
export async function findGo(): Promise<FoundGo> {
  try {
    await run('go', ['mod', 'download'], { cwd: GO_FOLDER, timeout: LOAD_MS })
  } catch (error) {
    return { missing: `no Go with its packages, ${(error as Error).message.split('\n')[0]}` }
  }
  const adapter = `${ROOT}.cache/go/adapter`
  await run('go', ['build', '-o', adapter, './internal/adapter'], { cwd: GO_FOLDER, timeout: LOAD_MS })
  return { adapter }
}

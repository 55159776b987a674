import { findProgram } from './find-program.js'
import { obtainGoProgram } from './go-program.js'

/** It passes a few megabytes on. */
const PROGRAM = {
  name: 'toxiproxy-server',
  program: 'github.com/Shopify/toxiproxy/v2/cmd/server',
  version: 'v2.12.0',
  isForSpeed: false,
} as const

/**
 * The program of toxiproxy: `toxiproxy-server` on PATH, else built by Go, once, into the cache folder.
 * @throws {ServiceError} with instructions when there is neither.
 */
export async function obtainToxiproxy(): Promise<{ readonly file: string; readonly source: 'binary' | 'package' }> {
  const onPath = findProgram(PROGRAM.name)
  if (onPath !== undefined) return { file: onPath, source: 'binary' }
  return { file: await obtainGoProgram(PROGRAM), source: 'package' }
}

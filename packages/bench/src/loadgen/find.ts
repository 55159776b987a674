import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { RunError } from '../exit-codes.js'
import type { Progress } from '../progress.js'
import { buildLoadgen } from './build.js'

const MANIFEST = fileURLToPath(new URL('../../loadgen/Cargo.toml', import.meta.url))
const PROGRAM = 'webmq-loadgen'

/**
 * Path of the load generator: the one that WEBMQ_LOADGEN names, else built in a checkout, else that of the package of
 * this platform.
 * @throws {RunError} when there is none; it says what to do.
 */
export async function findLoadgen(progress: Pick<Progress, 'phase' | 'note'>): Promise<string> {
  const named = process.env.WEBMQ_LOADGEN
  if (named) return named
  if (existsSync(MANIFEST)) return await buildLoadgen(progress)
  const platform = platformName(process)
  const name = `webmq-bench-${platform}`
  try {
    const folder = dirname(createRequire(import.meta.url).resolve(`${name}/package.json`))
    const program = join(folder, PROGRAM)
    if (existsSync(program)) return program
  } catch {
    // Not installed: the error below says so.
  }
  throw new RunError(
    process.platform === 'linux'
      ? `the load generator for ${platform} is not installed: npm install ${name} (npm leaves it out with --omit=optional); --scenario clients works without it`
      : `the load generator runs on Linux, not on ${platform}: --scenario clients works without it`,
  )
}

/** The part of `process` that names a platform. */
export interface System {
  readonly platform: string
  readonly arch: string
  readonly report: { getReport(): object; excludeNetwork?: boolean }
}

/** Name of a platform in the names of packages: `linux-x64-gnu`, `darwin-arm64`. */
export function platformName({ platform, arch, report }: System): string {
  if (platform !== 'linux') return `${platform}-${arch}`
  return `${platform}-${arch}-${glibcVersion({ report }) === undefined ? 'musl' : 'gnu'}`
}

/** Of the C library of a process: `2.36`; `undefined`: it is another one. */
export function glibcVersion({ report }: Pick<System, 'report'>): string | undefined {
  // With the network in it, the report looks up the names of all peers.
  report.excludeNetwork = true
  const { header } = report.getReport() as { readonly header: { readonly glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime
}

import { createRequire } from 'node:module'
import { glibcVersion } from '../loadgen/find.js'
import { installedVersion } from './installed-version.js'

/** The newest first. A build needs a C library, which may be newer than the machine's. */
const PACKAGES = ['@btc-vision/uwebsockets.js', 'uWebSockets.js'] as const

export interface LoadedUws {
  /** The module of uWebSockets.js. */
  readonly uws: unknown
  /** Which package it is, and why no newer one: `uWebSockets.js (@rjweb/uws 1.5.0), because …`. */
  readonly version: string
}

/**
 * Loads the newest uWebSockets.js that loads here.
 * @param name Loads this package and no other.
 * @param load Replaceable for tests.
 * @throws with the reason of every package when none loads.
 */
export function loadUws(name?: string, load = loadPackage): LoadedUws {
  const reasons: string[] = []
  for (const candidate of name === undefined ? PACKAGES : [name]) {
    try {
      const { uws, version } = load(candidate)
      return { uws, version: [version, ...reasons].join(', because ') }
    } catch (error) {
      reasons.push(`${candidate} does not load: ${reasonOf(error)}`)
    }
  }
  throw new Error(reasons.join('\n'))
}

/** By `require`: Node 20 rejects the `import` of a CommonJS module that throws, and throws its error once more. */
function loadPackage(name: string): LoadedUws {
  const version = `${installedVersion(name)}${otherLibc()}`
  return { uws: createRequire(import.meta.url)(name), version }
}

/** Names the C library when it may not be the machine's. */
function otherLibc(): string {
  return process.env.WEBMQ_BENCH_PEER_ROOT ? ` on glibc ${glibcVersion(process)}` : ''
}

/** The last line is the loader's; the file that it names is known. */
function reasonOf(error: unknown): string {
  const lines = (error instanceof Error ? error.message : String(error)).trim().split('\n')
  return (lines.at(-1) ?? '').replace(/ \(required by .*\)$/, '')
}

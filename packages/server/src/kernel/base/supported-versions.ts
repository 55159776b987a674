import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { MANIFEST } from './manifest.js'

/** A version that is installed, and not supported. */
export interface Unsupported {
  /** `@opentelemetry/api >=1.3.0 <2.0.0, but 1.0.4 is installed` */
  readonly reason: string
  /** What npm installs instead, as an argument in a shell: `"@opentelemetry/api@>=1.3.0 <2.0.0"`. */
  readonly wanted: string
}

/**
 * Why an installed optional peer cannot be used; `undefined` when it can, when it is not installed, or when nothing says
 * its version, as in a bundle. Reads files, at most one for each folder above the module.
 * @param versionOf Replaceable for tests.
 */
export function unsupportedVersion(name: string, versionOf = installedVersion): Unsupported | undefined {
  const range = MANIFEST.supportedPeers[name]
  const version = range === undefined ? undefined : versionOf(name)
  if (range === undefined || version === undefined || isWithin(version, range)) return undefined
  return { reason: `${name} ${range}, but ${version} is installed`, wanted: `"${name}@${range}"` }
}

/** @param range `>=5.4.0 <7.0.0` */
export function isWithin(version: string, range: string): boolean {
  const [from = '', before = ''] = range.split(' ').map((bound) => bound.replace(/^[<>=]+/, ''))
  return compare(version, from) >= 0 && compare(version, before) < 0
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}

/**
 * The version of a package as an import of it here finds it; `undefined` when there is none.
 * It is that of the nearest `package.json` with a version: those of folders within a package have none.
 */
export function installedVersion(name: string): string | undefined {
  let folder: string
  try {
    folder = path.dirname(createRequire(import.meta.url).resolve(name))
  } catch {
    return undefined
  }
  for (;;) {
    const version = versionIn(folder)
    const parent = path.dirname(folder)
    if (version !== undefined || parent === folder) return version
    folder = parent
  }
}

function versionIn(folder: string): string | undefined {
  try {
    const { version } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as { version?: unknown }
    return typeof version === 'string' ? version : undefined
  } catch {
    return undefined
  }
}

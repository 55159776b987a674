import { statSync } from 'node:fs'
import type { Command } from 'commander'
import { environmentNameOf, type OptionSpec, shownValue } from '../options/spec.js'
import { readNamedSources } from './option-flags.js'
import { hasFileVariant } from './option-sources.js'

/** Permission of everybody to read a file. */
const READ_BY_OTHERS = 0o004

/**
 * Secrets of the options that every user of this machine can see, because they stand on the command line or in a file that all
 * may read; one sentence each. Windows has no such permissions.
 *
 * @throws {WebMQError} `E_OPTION_INVALID`, as the sources.
 */
export function exposedSecrets(
  command: Command,
  specs: readonly OptionSpec[],
  env: NodeJS.ProcessEnv,
): readonly string[] {
  const files = new Map<string, string>()
  const fromFiles = new Set<string>()
  const sources = readNamedSources(command, specs, env, (name, path) => {
    fromFiles.add(name)
    if (specs.some((spec) => spec.name === name && holdsSecret(spec, undefined))) files.set(path, name)
  })
  const warnings: string[] = []
  for (const { name: source, values } of sources) {
    for (const spec of specs) {
      const value = values.get(spec.name)
      if (spec.name === 'tls.keyFile' && Array.isArray(value)) for (const path of value) files.set(path, spec.name)
      if (value === undefined || fromFiles.has(spec.name) || !holdsSecret(spec, value)) continue
      if (source === 'flag') warnings.push(`every user of this machine can see --${spec.flag}; ${otherWayOf(spec)}`)
      else if (source !== 'environment' && source !== 'PORT') files.set(source, spec.name)
    }
  }
  return [...warnings, ...(process.platform === 'win32' ? [] : [...files].flatMap(readableByOthers))]
}

/** Whether a value, or without one any value, is a secret. */
function holdsSecret(spec: OptionSpec, value: unknown): boolean {
  return value === undefined ? 'shown' in spec || 'isSecret' in spec : shownValue(spec, value) !== value
}

function otherWayOf(spec: OptionSpec): string {
  return `use ${hasFileVariant(spec) ? `--${spec.flag}-file` : environmentNameOf(spec)}`
}

function readableByOthers([path, name]: readonly [path: string, name: string]): readonly string[] {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & READ_BY_OTHERS) === 0
    ? []
    : [`every user of this machine can read ${path} (${name}); chmod o-r ${path}`]
}

import { WebMQError } from 'webmq-client/protocol'
import { type ResolvedOptions, resolveOptions } from '../options/options.js'
import { warningsOf } from '../options/rules.js'
import { type ServerOptions, tlsFilesOf } from '../options/server-options.js'
import { optionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { withoutSecrets } from '../options/without-secrets.js'

import { unknownVariables } from './environment.js'
import { EXIT } from './exit-codes.js'
import type { NamedSource } from './option-flags.js'
import { mergeSources } from './option-sources.js'
import { note, printable, type Terminal, warn } from './terminal.js'

/** How the result is written, and what fails. */
export interface CheckFlags {
  readonly json?: boolean
  readonly strict?: boolean
}

/** An option that a start would use. */
interface EffectiveOption {
  readonly name: string
  /** Hidden if it is secret. */
  readonly value: unknown
  /** `default`, or the source. */
  readonly source: string
}

/**
 * Checks the options as a start would, without one: reads all sources and the certificates, and prints what results.
 *
 * @param read Reads the sources; its errors are the result of the check.
 * @returns The exit code: `USAGE` if the options are not valid, `FAILED` for warnings with `strict`.
 */
export async function configCheck(
  read: () => readonly NamedSource[],
  { json = false, strict = false }: CheckFlags,
  terminal: Terminal,
): Promise<number> {
  const { stdout, env } = terminal
  try {
    const sources = read()
    const resolved = resolveOptions(mergeSources(sources.map(({ values }) => values)))
    const options = effectiveOptions(resolved, sources)
    const warnings = [...unknownVariables(env), ...warningsOf(resolved), ...(await certificateProblems(resolved))]
    if (json) stdout.write(`${JSON.stringify({ valid: true, options, warnings }, null, 2)}\n`)
    else {
      stdout.write(options.map(lineOf).join(''))
      for (const warning of warnings) warn(printable(warning), terminal)
      note(`the options are valid; warnings: ${warnings.length}`, terminal)
    }
    return strict && warnings.length > 0 ? EXIT.FAILED : EXIT.OK
  } catch (error) {
    if (!json || !(error instanceof WebMQError)) throw error
    const { code, message, docs } = error
    stdout.write(`${JSON.stringify({ valid: false, error: { code, message, docs } }, null, 2)}\n`)
    return EXIT.USAGE
  }
}

function effectiveOptions(resolved: ResolvedOptions, sources: readonly NamedSource[]): readonly EffectiveOption[] {
  const shown = withoutSecrets(resolved)
  return OPTIONS.flatMap(({ name }) => {
    const value = optionValue(shown, name)
    if (value === undefined) return []
    return [{ name, value, source: sourceOf(name, sources) }]
  })
}

/** The source of an option: the first that has it, or `default`. */
export function sourceOf(option: string, sources: readonly NamedSource[]): string {
  return sources.find(({ values }) => values.has(option))?.name ?? 'default'
}

function lineOf({ name, value, source }: EffectiveOption): string {
  return `${name.padEnd(31)} ${printable(JSON.stringify(value))}${source === 'default' ? '' : `  (${printable(source)})`}\n`
}

/** @throws {WebMQError} `E_OPTION_INVALID`: a file of a certificate cannot be used. */
async function certificateProblems({ tls }: ResolvedOptions): Promise<readonly string[]> {
  if (tls === undefined) return []
  const { readCertificate } = await import('../identity/certificates/read-certificate.js')
  const { certificateWarnings } = await import('../identity/certificates/warnings.js')
  const certificates = await Promise.all(tlsFilesOf(tls).map(readCertificate))
  return certificates.flatMap((certificate) => certificateWarnings(certificate, Date.now()))
}

/** Prints the resolved options as a config file. */
export function configPrint(options: ServerOptions, terminal: Terminal): void {
  const resolved = resolveOptions(options)
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved)]) warn(warning, terminal)
  terminal.stdout.write(`${JSON.stringify(withoutSecrets(resolved), null, 2)}\n`)
}

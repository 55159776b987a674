import type { ResolvedOptions } from './options.js'
import { type ListOption, type OptionSpec, optionValue, setOption, type TextOption } from './spec.js'
import { OPTIONS } from './table.js'

/** Replaces the value of a secret. */
const HIDDEN = '[hidden]'

/** The options with all secrets replaced. A broker or a logger of the embedder is left out: only its name is shown. */
export function withoutSecrets(options: ResolvedOptions): Readonly<Record<string, unknown>> {
  const { logger: _, ...rest } = options
  const shown: Record<string, unknown> = { ...rest }
  if (typeof options.broker !== 'string') shown.broker = options.broker.name
  for (const spec of OPTIONS) {
    if (!hasSecret(spec)) continue
    const value = optionValue(shown, spec.name)
    if (value !== undefined) setOption(shown, spec.name, withoutSecret(spec, value))
  }
  return shown
}

function hasSecret(spec: OptionSpec): spec is TextOption | ListOption {
  if (spec.type === 'list') return spec.isSecret === true
  return spec.type === 'text' && (spec.isSecret === true || spec.shown !== undefined)
}

function withoutSecret(spec: TextOption | ListOption, value: unknown): unknown {
  if (Array.isArray(value)) return value.map(() => HIDDEN)
  return typeof value === 'string' && spec.type === 'text' && spec.shown !== undefined ? spec.shown(value) : HIDDEN
}

import type { ResolvedOptions } from './options.js'
import { optionValue, setOption, shownValue } from './spec.js'
import { OPTIONS } from './table.js'

/** Replaces the value of a secret. */
const HIDDEN = '[hidden]'

/** The options with all secrets replaced. A broker or a logger of the embedder is left out: only its name is shown. */
export function withoutSecrets(options: ResolvedOptions): Readonly<Record<string, unknown>> {
  const { logger: _, ...rest } = options
  const shown: Record<string, unknown> = { ...rest }
  if (typeof options.broker !== 'string') shown.broker = options.broker.name
  for (const spec of OPTIONS) {
    const value = optionValue(shown, spec.name)
    const visible = shownValue(spec, value)
    if (visible === value) continue
    setOption(shown, spec.name, visible ?? (Array.isArray(value) ? value.map(() => HIDDEN) : HIDDEN))
  }
  return shown
}

import { HOOK_NAMES } from '../../kernel/identity/hook-port.js'

/** Why a value is no {@link Hooks}, to be put behind its name; `undefined` when it is. */
export function hooksDefect(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return 'is not an object with functions'
  const known: readonly string[] = HOOK_NAMES
  const names = [...new Set([...Object.keys(value), ...known.filter((name) => name in value)])]
  for (const name of names) {
    if (!known.includes(name)) return `has an unknown hook ${name}; there are ${known.join(', ')}`
    const hook: unknown = (value as Record<string, unknown>)[name]
    if (hook !== undefined && typeof hook !== 'function') return `: ${name} is not a function`
  }
  return names.length === 0 ? `has no hook; there are ${known.join(', ')}` : undefined
}

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { reasonOf } from '../../kernel/base/reason.js'
import type { HookName, Hooks } from './hooks.js'

export const HOOK_NAMES = [
  'connect',
  'listen',
  'publish',
  'deliver',
  'presence',
  'disconnect',
] as const satisfies readonly HookName[]

/**
 * Loads hooks from a module: the members of its default export or, without one, its named exports.
 * @param path Relative to the working directory.
 * @throws {WebMQError} `E_OPTION_INVALID` with the path and the reason.
 */
export async function loadHooks(path: string): Promise<Hooks> {
  let module: Record<string, unknown>
  try {
    module = (await import(pathToFileURL(resolve(path)).href)) as Record<string, unknown>
  } catch (cause) {
    const reason = reasonOf(cause)
    throw invalidOption(`hooks: cannot load ${path} (${reason})`, cause)
  }
  const hooks = module.default ?? { ...module }
  const defect = hooksDefect(hooks)
  if (defect !== undefined) throw invalidOption(`hooks: ${path} ${defect}`)
  return hooks as Hooks
}

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

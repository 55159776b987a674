import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Hooks } from '../../doors/options/hooks.js'
import { hooksDefect } from '../../doors/options/hooks-defect.js'
import { invalidOption } from '../../kernel/base/invalid-option.js'
import { reasonOf } from '../../kernel/base/reason.js'

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

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { WebMQError } from 'webmq-client/protocol'
import { hooksDefect } from './defect.js'
import type { Hooks } from './hooks.js'

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
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new WebMQError('E_OPTION_INVALID', { detail: `hooks: cannot load ${path} (${reason})`, cause })
  }
  const hooks = module.default ?? { ...module }
  const defect = hooksDefect(hooks)
  if (defect !== undefined) throw new WebMQError('E_OPTION_INVALID', { detail: `hooks: ${path} ${defect}` })
  return hooks as Hooks
}

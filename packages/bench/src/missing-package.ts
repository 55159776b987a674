import { RunError } from './exit-codes.js'

const NOT_FOUND = /Cannot find package '([^']+)'/

/**
 * The way out when a package that only some scenarios need is not installed; `undefined` when the text is about
 * something else.
 */
export function missingPackage(text: string): string | undefined {
  const [, name] = NOT_FOUND.exec(text) ?? []
  if (name === undefined) return undefined
  return `it needs ${name}: npm install ${name}; a server that runs already is measured with --url`
}

/** Loads a package that only some scenarios need. @throws {RunError} that says how to get it. */
export async function importBeside<Module>(load: () => Promise<Module>, what: string): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    const way = missingPackage(cause instanceof Error ? cause.message : String(cause))
    throw way === undefined ? cause : new RunError(`${what}: ${way}`, { cause })
  }
}

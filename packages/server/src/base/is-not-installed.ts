import { createRequire } from 'node:module'

/**
 * Whether an import failed because its package is not installed; otherwise the package is there, and broken.
 * @param name Of the package.
 */
export function isNotInstalled(error: unknown, name: string): boolean {
  if (error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND') return true
  try {
    createRequire(import.meta.url).resolve(name)
    return false
  } catch (cause) {
    // The loader of Yarn throws in another thread, from where no code of an error comes. `require` asks Yarn in this one.
    return cause instanceof Error && 'code' in cause && cause.code === 'MODULE_NOT_FOUND'
  }
}

import { accessSync, constants, statSync } from 'node:fs'
import path from 'node:path'

/**
 * An executable by name.
 * @param folders Searched before those of PATH.
 * @returns its path, `undefined` when there is none
 */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const onPath = (process.env.PATH ?? '').split(path.delimiter).filter((folder) => folder !== '')
  return [...folders, ...onPath].map((folder) => path.join(folder, name)).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** For what belongs to a checkout: `.cache` of the repository, or that of the user where there is none. */
export function cacheFolder(): string {
  const repository = fileURLToPath(new URL('../../..', import.meta.url))
  if (existsSync(path.join(repository, 'pnpm-workspace.yaml'))) return path.join(repository, '.cache')
  return userCacheFolder()
}

/** For what all checkouts of a user share. */
export function userCacheFolder(): string {
  return path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'webmq')
}

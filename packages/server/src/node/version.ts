import { readFileSync } from 'node:fs'

/** Version of this package from `package.json`; sent in `welcome`. */
export const VERSION: string = readVersion()

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return version
}

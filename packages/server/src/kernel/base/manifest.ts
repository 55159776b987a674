import { readFileSync } from 'node:fs'

/** The part of `package.json` that the server itself reads. */
interface Manifest {
  readonly version: string
  /** Of each optional peer the versions that it works with, as `>=5.4.0 <7.0.0`; `peerDependencies` lets npm take any. */
  readonly supportedPeers: Readonly<Record<string, string>>
}

/** `package.json` of this package. */
export const MANIFEST = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as Manifest

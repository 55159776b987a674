import { MANIFEST } from '../base/manifest.js'

/** Version of this package from `package.json`; sent in `welcome`. */
export const VERSION: string = MANIFEST.version

// The package has docs/errors.md, for `webmq-server explain`. The build and every pack copy it.
import { copyFileSync } from 'node:fs'

copyFileSync(new URL('../../docs/errors.md', import.meta.url), new URL('errors.md', import.meta.url))

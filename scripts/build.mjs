import { build } from './lib/build.mjs'
import { runScript } from './lib/steps.mjs'

await runScript(build)

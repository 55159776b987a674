import { setChecks } from './checks.js'
import { explain } from './development/explain.js'
import { checkOptions } from './development/options.js'
import { checkPublish, checkRange } from './development/range.js'
import { SearchedRefusals } from './development/refusals.js'
import { tokenDefect } from './development/token-defect.js'
import { encodeJson } from './protocol/encode-json.js'
import { ERRORS } from './protocol/errors.js'
import { keyDefect, patternDefect } from './protocol/keys.js'

setChecks({
  errors: ERRORS,
  options: checkOptions,
  range: checkRange,
  publish: checkPublish,
  encodeJson,
  keyDefect,
  patternDefect,
  tokenDefect,
  explain,
  refusals: (onFound) => new SearchedRefusals(onFound),
})

export * from './index.js'

import { setChecks } from './checks.js'
import { explain } from './development/explain.js'
import { linkOf } from './development/link.js'
import { checkOptions } from './development/options.js'
import { adviceFor } from './development/payload-advice.js'
import { checkPublish, checkRange } from './development/range.js'
import { SearchedRefusals } from './development/refusals.js'
import { tokenDefect } from './development/token-defect.js'
import { withAdvice } from './development/told.js'
import { warnOfWords } from './development/words.js'
import { encodeJson } from './protocol/encode-json.js'
import { ERRORS, endMessages } from './protocol/errors.js'
import { keyDefect, patternDefect } from './protocol/keys.js'

setChecks({
  errors: ERRORS,
  options: checkOptions,
  range: checkRange,
  publish: checkPublish,
  encodeJson: (payload) => encodeJson(payload, adviceFor),
  keyDefect,
  patternDefect,
  tokenDefect,
  explain,
  told: withAdvice,
  words: warnOfWords,
  refusals: (onFound) => new SearchedRefusals(onFound),
})

endMessages(linkOf)

export * from './index.js'

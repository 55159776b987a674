export declare const frameworkChecks: readonly { readonly name: string }[]

"""The loader: options, plan and engine, and what it reports.

`loader` checks the arguments into one `options.Options`. `plan` writes the layout document and
chooses a feed, and `engine` opens the library's loader. `meshfeed._feed` delivers its batches.
`position` and `account` hold the methods about states, statistics and certificates. `decoding` and
`notices` warn of loaders that are valid but slow or surprising. `placed` puts batches on devices
that are not JAX's.
"""

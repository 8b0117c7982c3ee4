# Runs verify.rb over the table of vectors: run.rb VERIFY.RB TABLE.TSV.

require File.expand_path(ARGV[0])

# A host's strings carry any of these labels over the same bytes.
LABELS = [Encoding::BINARY, Encoding::UTF_8, Encoding::ISO_8859_1, Encoding::US_ASCII].freeze

def unhex(cell)
  cell == "-" ? [] : cell.split(",", -1).map { |text| [text].pack("H*") }
end

def verdict(*arguments, **rest)
  { true => "accepted", false => "refused" }.fetch(ServiceWebhooks.verify(*arguments, **rest))
rescue StandardError => e
  e.inspect
end

passed = 0
rows = File.read(ARGV[1], encoding: "UTF-8").lines(chomp: true).drop(1)
rows.each do |row|
  name, signatures, secrets, body, now, tolerance, expected = row.split("\t", -1)
  # Most cases have the tolerance that is the default.
  rest = tolerance == "300" ? {} : { tolerance: Integer(tolerance) }
  found = LABELS.flat_map do |label|
    values = unhex(signatures).map { |value| value.force_encoding(label) }
    bytes = unhex("#{body},").first.force_encoding(label)
    # An array, and what stands for it where a server hands out one value or none.
    forms = [values, *(values if values.length == 1), *([nil] if values.empty?)]
    forms.map { |form| verdict(form, bytes, unhex(secrets), Integer(now), **rest) }
  end
  if found.uniq == [expected]
    passed += 1
  else
    warn "#{name}: expected #{expected}, found #{found.uniq}"
  end
end
puts [RUBY_VERSION, passed, rows.length].join("\t")
exit passed == rows.length

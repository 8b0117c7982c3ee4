# Verifies webhooks. Copy this file into your program; it needs Ruby 3.0 or later.
#
#     signature = request.headers["X-Service-Signature"]
#     unless ServiceWebhooks.verify(signature, request.raw_post, [ENV["WEBHOOK_SECRET"]])
#       return head :bad_request
#     end
#
# signatures: the header's value, or an array of all its values. body: the bytes as received, before
# any JSON code. secrets: all that are valid now, two during a rotation. Only true means genuine.

require "openssl"

module ServiceWebhooks
  SECRET = /\Awhsec_[!-~]{1,249}\z/n
  PART = /\A([!-<>-~]+)=([!-~]*)\z/n
  TIMESTAMP = /\A(0|[1-9][0-9]{0,18})\z/n
  DIGEST = /\A[0-9a-f]{64}\z/n

  def self.verify(signatures, body, secrets, now = Time.now.to_i, tolerance: 300)
    timestamp, digests = parse(Array(signatures).map(&:b))
    return false if timestamp.nil?

    message = "#{timestamp}.".b << body.b
    genuine = false
    secrets.map { |secret| secret.to_s.b }.grep(SECRET) do |secret|
      expected = OpenSSL::HMAC.hexdigest("SHA256", secret, message)
      digests.each { |digest| genuine |= OpenSSL.fixed_length_secure_compare(digest, expected) }
    end
    genuine && (timestamp.to_i - now).abs <= tolerance
  end

  def self.parse(signatures)
    return if signatures.length != 1 || signatures.first.bytesize > 1024

    parts = signatures.first.split(",", -1)
    return if parts.empty? || parts.length > 16

    timestamp = nil
    digests = []
    parts.each do |part|
      pair = PART.match(part.gsub(/\A[ \t]+|[ \t]+\z/n, ""))
      return if pair.nil?

      name, value = pair.captures
      if name == "t"
        return if timestamp || !TIMESTAMP.match?(value)

        timestamp = value
      elsif name == "v1" && DIGEST.match?(value)
        digests << value # another v1 may be good, so an ill-formed one is ignored
      end
    end
    [timestamp, digests]
  end
  private_class_method :parse
end
